//! The next run, and the level of the machine, from earlier runs.

use ombx_estimate::runs::{level, next_run};

use super::Lines;
use crate::random::Uniform;

/// Numbers of earlier runs.
const RUNS: [usize; 9] = [3, 4, 5, 6, 8, 10, 12, 15, 20];
/// Standard deviation between runs, as a logarithm.
const BETWEEN: f64 = 0.04;

pub(super) fn simulate(lines: &mut Lines, times: u64, seed: u64) {
    for k in RUNS {
        for (name, kind, must) in [
            ("normal", Kind::Normal, [94.0, 96.0]),
            ("exponential", Kind::Exponential, [91.0, 95.0]),
            ("autocorrelated 0.5", Kind::Correlated, [92.5, 95.5]),
        ] {
            let (mut inside, mut level_inside) = (0, 0);
            let mut random = Uniform::new(seed ^ (k as u64) << 32);
            for _ in 0..times {
                let values = kind.draw(k + 1, &mut random);
                let (earlier, next) = values.split_at(k);
                inside +=
                    u64::from(next_run(earlier).is_some_and(|[low, high]| low <= next[0] && next[0] <= high));
                level_inside +=
                    u64::from(level(next[0], earlier).is_some_and(|[low, high]| low <= 1.0 && 1.0 <= high));
            }
            let model = format!("{name}, {k} runs");
            lines.share("next run: t(0.975, k - 1) sqrt(1 + 1/k) s", &model, [inside, times], must);
            if kind == Kind::Normal {
                lines.share("level: t(0.975, k - 1) s", &model, [level_inside, times], [94.0, 96.0]);
            }
        }
    }
}

/// How runs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Exponential,
    Correlated,
}

impl Kind {
    /// Returns headlines of consecutive runs, whose level is 1.
    fn draw(self, runs: usize, random: &mut Uniform) -> Vec<f64> {
        let mut last = random.normal();
        let logarithms = (0..runs).map(|_| match self {
            Kind::Normal => BETWEEN * random.normal(),
            Kind::Exponential => -BETWEEN * (1.0 - random.next()).ln(),
            Kind::Correlated => {
                last = 0.5 * last + 0.75_f64.sqrt() * random.normal();
                BETWEEN * last
            }
        });
        logarithms.map(f64::exp).collect()
    }
}
