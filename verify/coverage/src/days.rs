//! Simulated days of `ombx check`: how often a good day misses a limit from good days.

use ombx_estimate::baseline::limit_of_days;

use crate::{document::with_interval, random::Random};

/// Numbers of good days.
const DAYS: [usize; 3] = [7, 10, 20];
/// Limits of a check.
const LIMITS: usize = 20;
/// Standard deviation of the logarithms of the times of days.
const SCATTER: f64 = 0.02;

/// How days differ.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    Normal,
    /// Logarithms have an exponential distribution: a long tail of slow days.
    Exponential,
    /// A day resembles the day before by 0.5.
    Correlated,
}

const MODELS: [(Model, &str); 3] =
    [(Model::Normal, "normal"), (Model::Exponential, "exponential"), (Model::Correlated, "normal, r = 0.5")];

/// Counts over checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checks {
    name: &'static str,
    days: usize,
    checks: u64,
    /// Checks with a limit that is exceeded on the first day, and those with one that is exceeded on both days.
    once: u64,
    twice: u64,
}

/// Simulates this many checks of each kind, each on two further good days.
pub(crate) fn simulate(checks: u64, seed: u64) -> Vec<Checks> {
    let kinds = MODELS.iter().flat_map(|model| DAYS.map(|days| (*model, days)));
    kinds.map(|((model, name), days)| of_kind(model, name, days, checks, seed)).collect()
}

fn of_kind(model: Model, name: &'static str, days: usize, checks: u64, seed: u64) -> Checks {
    let mut random = Random(seed);
    let mut counts = Checks { name, days, checks, once: 0, twice: 0 };
    for _ in 0..checks {
        let (mut once, mut twice) = (false, false);
        for _ in 0..LIMITS {
            let times = times(model, days + 2, &mut random);
            let limit = limit_of_days(&times[..days], LIMITS).unwrap_or(f64::INFINITY);
            let [first, second] = [times[days], times[days + 1]].map(|time| time > limit);
            (once, twice) = (once || first, twice || first && second);
        }
        counts.once += u64::from(once);
        counts.twice += u64::from(twice);
    }
    counts
}

fn times(model: Model, days: usize, random: &mut Random) -> Vec<f64> {
    let mut last = random.normal();
    let values = (0..days).map(|_| match model {
        Model::Normal => random.normal(),
        Model::Exponential => -random.uniform().ln() - 1.0,
        Model::Correlated => {
            last = 0.5 * last + 0.75f64.sqrt() * random.normal();
            last
        }
    });
    values.map(|value| (SCATTER * value).exp()).collect()
}

/// Returns a line for each kind.
pub(crate) fn table(all: &[Checks]) -> String {
    let head = "days | good days | checks | a limit was exceeded on one good day, % | on two in a row, %";
    let line = |&Checks { name, days, checks, once, twice }: &Checks| {
        let [once, twice] = [once, twice].map(|hits| with_interval(hits, checks));
        format!("{name} | {days} | {checks} | {once} | {twice}")
    };
    ombx_toolchain::table(head, all.iter().map(line))
}
