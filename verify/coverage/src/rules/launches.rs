//! Intervals within a run, and states of the machine.

use std::time::Duration;

use ombx_core::measure::stop::LEAST_OF_LAUNCH;
use ombx_estimate::{
    launches::{LEAST_LONG_LAUNCHES, Progress, RowProgress, Schedule, USUAL_BUDGET, interval},
    state::{self, Distances, OTHER_STATE, States},
};
use ombx_record::{result::RowName, stats::median};
use ombx_testkit::noise::Noise;

use super::Lines;
use crate::random::Uniform;

const PRECISION: f64 = 0.02;
const LAUNCH: Duration = Duration::from_millis(300);

/// Distances of cores in two states, and how many times as long messages take in the second.
const DISTANCES_NS: [f64; 2] = [52.0, 252.0];
const SLOWER: f64 = 3.5;

pub(super) fn simulate(lines: &mut Lines, times: u64, seed: u64) {
    within_a_run(lines, times, seed);
    few_samples(lines, times, seed);
    states(lines, times, seed);
    labels(lines, times, seed);
}

/// Launch of a simulated run: its median and distances.
struct Launch {
    median: f64,
    distances: Distances,
}

/// What a run found in its most frequent state.
struct Found {
    ends: [f64; 2],
    headline: f64,
    launches: usize,
    /// Places of the launches behind the headline.
    at: Vec<usize>,
}

/// Runs launches until the schedule of ombx ends.
fn run(mut launch: impl FnMut() -> Launch) -> Option<Found> {
    let (mut medians, mut distances) = (Vec::new(), Vec::new());
    let mut schedule = Schedule::new(PRECISION, USUAL_BUDGET, USUAL_BUDGET);
    loop {
        let Launch { median: next, distances: of_launch } = launch();
        medians.push(next);
        distances.push(of_launch);
        let numbers: Vec<usize> = (0..medians.len()).collect();
        let first = state::divide(&medians, &numbers, &States::new(&distances)).into_iter().next()?;
        let values: Vec<f64> = first.at.iter().map(|at| medians[*at]).collect();
        let (found, headline) = (interval(&values), median(&values)?);
        let reached = found.map(|found| (found.high - found.low) / 2.0 / headline);
        let done = medians.len() as u32;
        let in_state = values.len() as u32;
        let row = RowProgress { name: RowName::new(""), in_state, reached };
        if schedule.ending(Progress { done, spent: LAUNCH * done, rows: &[row] }).is_some() {
            let found = found?;
            return Some(Found {
                ends: [found.low, found.high],
                headline,
                launches: medians.len(),
                at: first.at,
            });
        }
    }
}

fn half(found: &Found) -> f64 {
    (found.ends[1] - found.ends[0]) / 2.0 / found.headline * 100.0
}

fn holds([low, high]: [f64; 2], x: f64) -> bool {
    (low..=high).contains(&x)
}

/// Launches in one state: coverage, half width, and how often the goal is reached.
fn within_a_run(lines: &mut Lines, times: u64, seed: u64) {
    let models = [
        ("scatter 1 %", Noise::Independent { sigma: 0.01 }, Some([0.6, 1.0])),
        ("scatter 5 %", Noise::Independent { sigma: 0.05 }, Some([2.0, 2.6])),
        ("scatter 15 %", Noise::Independent { sigma: 0.15 }, None),
        ("exponential tail of 5 %", Noise::Tailed { mean: 0.05, phi: 0.0 }, None),
        ("exponential tail of 20 %", Noise::Tailed { mean: 0.2, phi: 0.0 }, None),
    ];
    for (name, noise, width) in models {
        let (mut covered, mut outside, mut halves, mut launches, mut reached) = (0, 0, Vec::new(), 0, 0);
        for seed in seed * times..(seed + 1) * times {
            let mut stream = noise.stream(seed);
            let mut values = Vec::new();
            let found = run(|| {
                let median = stream.next_time();
                values.push(median);
                Launch { median, distances: Distances::default() }
            });
            let Some(found) = found else { continue };
            let truth = noise.median(seed, 0..30, 1);
            covered += u64::from(holds(found.ends, truth));
            let range = values.iter().fold([f64::INFINITY, 0.0], |[low, high], x| [x.min(low), x.max(high)]);
            outside += u64::from(found.ends[0] < range[0] || found.ends[1] > range[1]);
            launches += found.launches;
            reached += u64::from(half(&found) <= PRECISION * 100.0);
            halves.push(half(&found));
        }
        let mean = launches as f64 / times as f64;
        let model = format!("{name}, {mean:.0} launches");
        lines.share("interval within a run covers", &model, [covered, times], [93.5, 97.5]);
        lines.share("interval leaves the range of its launches", &model, [outside, times], [0.0, 0.0]);
        if let Some(must) = width {
            let middle = median(&halves).unwrap_or(f64::NAN);
            lines.figure("half width", &model, middle, must);
        }
        if name == "scatter 1 %" {
            lines.share("precision of 2 % reached", &model, [reached, times], [98.0, 100.0]);
        }
    }
}

/// Launches of long iterations, whose medians are those of three samples.
///
/// The median of an odd number of independent samples is as often below their true median as above it, whatever their distribution. Three
/// are the fewest of which one disturbed sample is not the median.
fn few_samples(lines: &mut Lines, times: u64, seed: u64) {
    let models = [
        ("samples scatter 10 %", Noise::Independent { sigma: 0.1 }),
        ("exponential tail of 20 %", Noise::Tailed { mean: 0.2, phi: 0.0 }),
    ];
    for (name, noise) in models {
        let seeds = seed * times..(seed + 1) * times;
        let covered = seeds.filter(|seed| is_covered_by_few(noise, *seed)).count() as u64;
        let model = format!("{name}, launches scatter 2 %");
        lines.share("interval of launches with 3 samples covers", &model, [covered, times], [93.5, 97.5]);
    }
}

/// Returns whether the interval of a run of launches with three samples covers the true median.
fn is_covered_by_few(noise: Noise, seed: u64) -> bool {
    let mut samples = noise.stream(seed);
    let mut levels = Noise::Independent { sigma: 0.02 }.stream(!seed);
    let found = run(|| {
        let three = [(); LEAST_OF_LAUNCH as usize].map(|()| samples.next_time());
        let median = levels.next_time() * median(&three).unwrap_or(f64::NAN);
        Launch { median, distances: Distances::default() }
    });
    found.is_some_and(|found| holds(found.ends, noise.median(seed, 0..90, 1)))
}

/// Launches in two states, which the distance labels.
fn states(lines: &mut Lines, times: u64, seed: u64) {
    let scatter = Noise::Independent { sigma: 0.03 };
    for (name, slow, stays, unknown, changes) in [
        ("30 % slow, independent", 0.3, 0.0, 0.0, 0.0),
        ("30 % slow, 60 % unknown", 0.3, 0.0, 0.6, 0.0),
        ("30 % slow, 90 % unknown", 0.3, 0.0, 0.9, 0.0),
        ("50 % slow, independent", 0.5, 0.0, 0.0, 0.0),
        ("30 % slow, in bursts", 0.3, 0.7, 0.0, 0.0),
        ("30 % slow, 39 % unknown", 0.3, 0.0, 0.39, 0.0),
        ("30 % slow, none known", 0.3, 0.0, 1.0, 0.0),
        ("30 % slow, 20 % change midway", 0.3, 0.0, 0.0, 0.2),
    ] {
        let (mut covered, mut with_interval, mut pooled, mut halves) = (0, 0, 0, Vec::new());
        for seed in seed * times..(seed + 1) * times {
            let (mut times_of, mut random) = (scatter.stream(seed), Uniform::new(seed));
            let mut is_slow = random.next() < slow;
            let mut all = Vec::new();
            let found = run(|| {
                if random.next() >= stays {
                    is_slow = random.next() < slow;
                }
                let is_changed = random.next() < changes;
                let mut distance = |is_slow: bool| {
                    let ns = DISTANCES_NS[usize::from(is_slow)]
                        * (0.04 * (random.next() + random.next() - 1.0)).exp();
                    (random.next() >= unknown).then_some(ns)
                };
                let distances =
                    Distances { before_ns: distance(is_slow), after_ns: distance(is_slow ^ is_changed) };
                let level = if is_slow { SLOWER } else { 1.0 };
                // A launch that changes midway has a median between both.
                let other = if is_slow { 1.0 } else { SLOWER };
                let level = if is_changed { (level * other).sqrt() } else { level };
                all.push(if is_changed { None } else { Some(is_slow) });
                Launch { median: level * times_of.next_time(), distances }
            });
            let Some(found) = found else { continue };
            let own = found.at.iter().filter(|at| all[**at] == all[found.at[0]]).count();
            pooled += u64::from(own < found.at.len());
            // The range of fewer launches covers less, and says so.
            if found.at.len() < LEAST_LONG_LAUNCHES as usize {
                continue;
            }
            with_interval += 1;
            let slow = found.at.iter().filter(|at| all[**at] == Some(true)).count();
            let truth = if slow * 2 > found.at.len() { SLOWER } else { 1.0 };
            covered += u64::from(holds(found.ends, truth));
            halves.push(half(&found));
        }
        lines.share(
            "interval of the most frequent state covers",
            name,
            [covered, with_interval],
            [91.7, 99.5],
        );
        let middle = median(&halves).unwrap_or(f64::NAN);
        // Of fewer launches in a state the interval is wider: of 6, 1.3 times the scatter to either side.
        lines.figure("its half width", name, middle, [0.5, if unknown > 0.0 { 4.5 } else { 3.0 }]);
        lines.share(
            "a figure pools two states",
            name,
            [pooled, times],
            [0.0, if unknown > 0.0 { 1.0 } else { 0.0 }],
        );
    }
}

/// Distances and medians of one state that are divided, and distances of two states that are not.
fn labels(lines: &mut Lines, times: u64, seed: u64) {
    let nine = |seed: u64, scatter: f64, levels: [f64; 2]| {
        let mut stream = Noise::Independent { sigma: scatter }.stream(seed);
        let mut next = |at: usize| Some(levels[at % 2] * stream.next_time());
        (0..9).map(|at| Distances { before_ns: next(at), after_ns: next(at) }).collect::<Vec<_>>()
    };
    let seeds = || seed * times..(seed + 1) * times;
    let divided = |scatter| {
        seeds().filter(|seed| States::new(&nine(*seed, scatter, [52.0; 2])).distances_ns().len() > 1).count()
            as u64
    };
    let merged =
        seeds().filter(|seed| States::new(&nine(*seed, 0.03, [55.0, 95.0])).distances_ns().len() < 2).count();
    let divides = "OTHER_STATE = 1.5 divides one state";
    lines.share(divides, "distances scatter by 5 %", [divided(0.05), times], [0.0, 0.6]);
    lines.share(divides, "distances scatter by 10 %", [divided(0.1), times], [0.0, 0.6]);
    let merges = "OTHER_STATE = 1.5 merges two states";
    lines.share(merges, "55 and 95 ns, 3 %", [merged as u64, times], [0.0, 3.0]);
    debug_assert!((OTHER_STATE - 1.5).abs() < 1e-9);
    for (name, noise) in [
        ("scatter 1 %", Noise::Independent { sigma: 0.01 }),
        ("scatter 5 %", Noise::Independent { sigma: 0.05 }),
        ("scatter 15 %", Noise::Independent { sigma: 0.15 }),
        ("scatter 20 %", Noise::Independent { sigma: 0.2 }),
        ("exponential tail of 20 %", Noise::Tailed { mean: 0.2, phi: 0.0 }),
    ] {
        for launches in [6, 9, 30] {
            let is_divided = |seed: &u64| {
                let mut stream = noise.stream(*seed);
                let medians: Vec<f64> = (0..launches).map(|_| stream.next_time()).collect();
                state::divide(&medians, &[], &States::default()).len() > 1
            };
            let divided = seeds().filter(is_divided).count() as u64;
            let rule = "gaps of ln 1.25 and two ranges divide one state";
            lines.share(rule, &format!("{name}, {launches} launches"), [divided, times], [0.0, 5.0]);
        }
    }
}
