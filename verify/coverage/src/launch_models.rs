//! Simulated launches: how often the interval of a run holds the true median, with the rule that ends runs.

use std::time::Duration;

use ombx_estimate::launches::{MOST_LAUNCHES, Progress, RowProgress, Schedule, interval};
use ombx_record::{result::RowName, stats};
use ombx_testkit::noise::Noise;

use crate::document::with_interval;

/// Default precision and budget of a run, and the time of a launch.
const PRECISION: f64 = 0.02;
const BUDGET: Duration = Duration::from_secs(30);
const LAUNCH: Duration = Duration::from_millis(300);

/// Models of how the medians of launches scatter.
const MODELS: [(&str, Noise); 10] = [
    ("log-normal 2 %", Noise::Independent { sigma: 0.02 }),
    ("log-normal 5 %", Noise::Independent { sigma: 0.05 }),
    ("log-normal 15 %", Noise::Independent { sigma: 0.15 }),
    ("skewed: exponential tail of 5 %", Noise::Tailed { mean: 0.05, phi: 0.0 }),
    ("skewed: exponential tail of 20 %", Noise::Tailed { mean: 0.2, phi: 0.0 }),
    ("two modes: 30 % take 1.5 times as long", Noise::Bimodal { share: 0.3, apart: 0.5, run: 0.0 }),
    ("two modes: 45 % take 1.5 times as long", Noise::Bimodal { share: 0.45, apart: 0.5, run: 0.0 }),
    ("autocorrelated 0.3", Noise::Correlated { phi: 0.3, sigma: 0.05 }),
    ("autocorrelated 0.5", Noise::Correlated { phi: 0.5, sigma: 0.05 }),
    // 10 % over 30 launches.
    ("drift of 10 % over 30 launches", Noise::Ramp { growth: 0.1 * 1000.0 / 30.0, sigma: 0.02 }),
];

/// Simulated runs of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launches {
    name: &'static str,
    runs: u64,
    launches: u64,
    covered: u64,
    drifting: u64,
    /// Runs without the mark `launches drift`, whose interval holds the true median.
    silent_covered: u64,
    /// Runs in whose range the next launch lies.
    next_within: u64,
}

/// Simulates runs of every model. Equal seeds give equal runs.
pub(crate) fn simulate(runs: u64, seed: u64) -> Vec<Launches> {
    MODELS.iter().map(|(name, noise)| of_model(name, *noise, seed * runs..(seed + 1) * runs)).collect()
}

fn of_model(name: &'static str, noise: Noise, seeds: std::ops::Range<u64>) -> Launches {
    let mut sum =
        Launches { name, runs: 0, launches: 0, covered: 0, drifting: 0, silent_covered: 0, next_within: 0 };
    let most = u64::from(MOST_LAUNCHES);
    for seed in seeds {
        let mut stream = noise.stream(seed);
        let (mut medians, mut schedule) = (Vec::new(), Schedule::new(PRECISION, BUDGET, BUDGET));
        let found = loop {
            medians.push(stream.next_time());
            let found = interval(&medians);
            let middle = stats::median(&medians).unwrap_or(1.0);
            let reached = found.map(|found| (found.high - found.low) / 2.0 / middle);
            let done = medians.len() as u32;
            let row = RowProgress { name: RowName::new(name), in_state: done, reached };
            if schedule.ending(Progress { done, spent: LAUNCH * done, rows: &[row] }).is_some() {
                break found;
            }
        };
        let Some(found) = found else { continue };
        let truth = noise.median(seed, 0..most, 1);
        let covered = found.low <= truth && truth <= found.high;
        let next = stream.next_time();
        let range = medians.iter().fold([next; 2], |[low, high], x| [low.min(*x), high.max(*x)]);
        sum.runs += 1;
        sum.launches += medians.len() as u64;
        sum.covered += u64::from(covered);
        sum.drifting += u64::from(found.drift);
        sum.silent_covered += u64::from(covered && !found.drift);
        sum.next_within += u64::from(medians.contains(&range[0]) && medians.contains(&range[1]));
    }
    sum
}

/// Returns a line for each model.
pub(crate) fn table(all: &[Launches]) -> String {
    let head = "medians of launches | runs | launches | covered % | marked `launches drift` % | covered or marked % | \
                next launch within the range %";
    ombx_toolchain::table(head, all.iter().map(line))
}

/// Returns the line of a model.
fn line(one: &Launches) -> String {
    let percent = |hits: u64| format!("{:.1}", hits as f64 / one.runs.max(1) as f64 * 100.0);
    format!(
        "{} | {} | {:.1} | {} | {} | {} | {}",
        one.name,
        one.runs,
        one.launches as f64 / one.runs.max(1) as f64,
        with_interval(one.covered, one.runs),
        percent(one.drifting),
        percent(one.silent_covered + one.drifting),
        percent(one.next_within),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_hold_the_true_median_as_often_as_documented() {
        for one in simulate(400, 3) {
            let share = one.covered as f64 / one.runs as f64;
            let least = match one.name {
                name if name.starts_with("drift") => 0.0,
                // An autocorrelation that short runs cannot show.
                name if name.starts_with("autocorrelated") => 0.84,
                _ => 0.91,
            };
            assert!(one.runs == 400 && share >= least, "{one:?}");
        }
    }
}
