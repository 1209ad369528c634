//! Percentiles of the single iterations of several launches.

use ombx_estimate::percentiles::over_launches;
use ombx_record::{result::SingleTimes, stats::median};

use super::Lines;
use crate::random::Uniform;

/// Single iterations of a launch.
const ITERATIONS: usize = 2500;
/// Launches of which the true percentile is taken.
const MANY: usize = 4000;
const QUANTILE: f64 = 0.99;

/// What disturbs the iterations of a launch.
#[derive(Clone, Copy)]
enum Disturbance {
    None,
    /// One burst a launch in the mean, which makes a hundredth of its iterations 1.5 to 2.5 times as long.
    Bursts,
    /// Launches differ by 3 %.
    Level,
    /// The share of iterations that are twice as long differs between launches by a factor of 2.
    Share,
}

pub(super) fn simulate(lines: &mut Lines, times: u64, seed: u64) {
    for (name, disturbance, bias) in [
        ("no disturbance", Disturbance::None, [-1.0, 1.0]),
        ("bursts", Disturbance::Bursts, [-1.0, 6.0]),
        ("levels differ by 3 %", Disturbance::Level, [-1.0, 1.0]),
        ("shares differ by a factor of 2", Disturbance::Share, [-10.0, 2.0]),
    ] {
        let mut random = Uniform::new(seed);
        let mut launch = || of_launch(disturbance, &mut random);
        let many: Vec<SingleTimes> = (0..MANY).map(|_| launch()).collect();
        let Some(truth) = over_launches(&many.iter().collect::<Vec<_>>(), QUANTILE) else { continue };
        for count in [9, 30] {
            let (mut covered, mut resolved, mut found, mut own) = (0, 0, Vec::new(), Vec::new());
            for _ in 0..times {
                let launches: Vec<SingleTimes> = (0..count).map(|_| launch()).collect();
                let all: Vec<&SingleTimes> = launches.iter().collect();
                own.push(median(&launches.iter().map(quantile).collect::<Vec<_>>()).unwrap_or(f64::NAN));
                let Some(p99) = over_launches(&all, QUANTILE) else { continue };
                let ends = p99.ci95.unwrap_or([f64::NAN; 2]);
                resolved += 1;
                covered += u64::from(ends[0] <= truth.value && truth.value <= ends[1]);
                found.push(p99.value);
            }
            let model = format!("{name}, {count} launches");
            let off = |values: &[f64]| {
                100.0 * (values.iter().sum::<f64>() / values.len().max(1) as f64 / truth.value - 1.0)
            };
            lines.share("p99 of all launches covers", &model, [covered, resolved], [88.0, 99.5]);
            lines.figure("p99 of all launches is off by", &model, off(&found), bias);
            lines.figure("median of the launches' own p99 is off by", &model, off(&own), [-30.0, 1.0]);
        }
    }
}

/// Returns the percentile of one launch.
fn quantile(one: &SingleTimes) -> f64 {
    let rank = (one.count() as f64 * QUANTILE).ceil() as u64;
    let mut before = 0;
    let found = one.counts.iter().find(|(_, count)| {
        before += u64::from(*count);
        before >= rank
    });
    found.map_or(f64::NAN, |(ns, _)| *ns)
}

/// Returns the iterations of a launch in nanoseconds: 1000 with an exponential tail of 5 %.
fn of_launch(disturbance: Disturbance, random: &mut Uniform) -> SingleTimes {
    let mut times: Vec<f64> =
        (0..ITERATIONS).map(|_| 1000.0 * (1.0 - 0.05 * (1.0 - random.next()).ln())).collect();
    match disturbance {
        Disturbance::None => {}
        Disturbance::Bursts => {
            // Times between bursts are exponential, so that their number has a Poisson distribution.
            let mut at = -(1.0 - random.next()).ln();
            while at < 1.0 {
                let longer = 1.5 + random.next();
                let from = (at * (ITERATIONS - ITERATIONS / 100) as f64) as usize;
                times[from..from + ITERATIONS / 100].iter_mut().for_each(|ns| *ns *= longer);
                at -= (1.0 - random.next()).ln();
            }
        }
        Disturbance::Level => {
            let level = (0.03 * random.normal()).exp();
            times.iter_mut().for_each(|ns| *ns *= level);
        }
        Disturbance::Share => {
            let share = 0.01 * (0.7 * random.normal()).exp();
            for ns in &mut times {
                if random.next() < share {
                    *ns *= 2.0;
                }
            }
        }
    }
    let mut times: Vec<f64> = times.into_iter().map(f64::round).collect();
    times.sort_unstable_by(f64::total_cmp);
    let counts = times.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).collect();
    SingleTimes { counts, least_ns: 0.0, step_ns: 0.0 }
}
