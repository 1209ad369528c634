//! Tests of the model with simulated launches whose parameters are known.

use ombx_estimate::samples::{CaseSamples, LaunchSamples};
use ombx_record::{
    result::{Measurement, Metric, Samples},
    stats::Summary,
};

use crate::model::{Estimate, Fit, Rows, segments::Curve};

/// Number of simulated runs of each kind.
const RUNS: u64 = 200;
/// Launches of a run.
const LAUNCHES: usize = 9;
/// Fixed time in nanoseconds, and time per byte.
const TRUE: (f64, f64) = (1000.0, 0.25);
/// Size of the first message that is sent by rendezvous.
const RENDEZVOUS: u64 = 16384;

/// Noise of simulated times, as standard deviations of logarithms.
#[derive(Debug, Clone, Copy)]
struct Noise {
    /// Common to all sizes of a launch.
    launch: f64,
    /// Of each time.
    time: f64,
    /// Probability of a time that is disturbed, and therefore up to four times as long.
    disturbed: f64,
}

const QUIET: Noise = Noise { launch: 0.02, time: 0.01, disturbed: 0.0 };
const LOUD: Noise = Noise { launch: 0.15, time: 0.03, disturbed: 0.05 };

/// Returns a normal value: a sum of twelve uniform ones.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Returns powers of two from 1 byte to 4M.
fn powers() -> Vec<u64> {
    (0..23).map(|k| 1 << k).collect()
}

fn simulated(sizes: Vec<u64>, seed: u64, noise: Noise, time: impl Fn(u64) -> f64) -> Curve {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut launch = |_| {
        let factor = (noise.launch * normal(&mut random)).exp();
        let mut one = |bytes: &u64| {
            let disturbed = if random.f64() < noise.disturbed { 1.0 + 3.0 * random.f64() } else { 1.0 };
            time(*bytes) * factor * disturbed * (noise.time * normal(&mut random)).exp()
        };
        sizes.iter().map(&mut one).collect()
    };
    let launches = (0..LAUNCHES).map(&mut launch).collect();
    Curve { sizes, launches, numbers: (0..LAUNCHES).collect() }
}

fn line(bytes: u64) -> f64 {
    TRUE.0 + TRUE.1 * (bytes - 1) as f64
}

/// Returns the time with a handshake that takes twice the time of a short message.
fn with_rendezvous(bytes: u64) -> f64 {
    line(bytes) + if bytes >= RENDEZVOUS { 2.0 * TRUE.0 } else { 0.0 }
}

fn contains(estimate: Estimate, value: f64) -> bool {
    estimate.interval.is_some_and(|[low, high]| low <= value && value <= high)
}

fn runs(noise: Noise, time: fn(u64) -> f64) -> impl Iterator<Item = Fit> {
    (0..RUNS).map(move |seed| simulated(powers(), seed, noise, time).fit().unwrap())
}

#[test]
fn intervals_contain_the_true_parameters() {
    for noise in [QUIET, LOUD] {
        let (mut fixed, mut per_byte) = (0, 0);
        for fit in runs(noise, with_rendezvous) {
            let (first, last) = (&fit.segments[0], &fit.segments[fit.segments.len() - 1]);
            fixed += u64::from(contains(first.fixed, TRUE.0 / 1e3));
            per_byte += u64::from(contains(last.per_byte, TRUE.1));
        }
        assert!(fixed * 100 >= 93 * RUNS && per_byte * 100 >= 93 * RUNS, "{noise:?}: {fixed}, {per_byte}");
    }
}

#[test]
fn a_line_has_few_switches() {
    for noise in [QUIET, LOUD] {
        let with_switches = runs(noise, line).filter(|fit| !fit.switches.is_empty()).count() as u64;
        assert!(with_switches * 100 <= 2 * RUNS, "{noise:?}: {with_switches}");
    }
}

#[test]
fn a_handshake_is_found_at_its_size() {
    for noise in [QUIET, LOUD] {
        let is_right = |fit: &Fit| {
            fit.switches.len() == 1
                && fit.switches[0].between == [RENDEZVOUS / 2, RENDEZVOUS]
                && contains(fit.switches[0].fixed, 2.0 * TRUE.0 / 1e3)
        };
        let right = runs(noise, with_rendezvous).filter(is_right).count() as u64;
        assert!(right * 100 >= 90 * RUNS, "{noise:?}: {right}");
    }
}

#[test]
fn sizes_that_end_after_different_numbers_of_launches_stay_in_the_model() {
    let row = |bytes: u64| {
        let samples = vec![Samples { batch: 1, elapsed_ns: vec![1000 + bytes; 6], ..Samples::default() }];
        let key = format!("p2p.latency/bytes={bytes}");
        Measurement {
            bytes: Some(bytes),
            summary: Summary::of_batches(&Measurement::combine(&samples, 2)),
            ..Measurement::new("p2p.latency", key, Metric::Latency, 2)
        }
    };
    let case = |(bytes, launches): (u64, usize)| {
        let of_launch =
            |number| LaunchSamples { row: row(bytes), batches: Vec::new(), single: Vec::new(), number };
        CaseSamples { setup: 0, other: None, launches: (0..launches).map(of_launch).collect() }
    };
    // The last size crashed in the third launch.
    let cases = [(8, 9), (16, 12), (32, 15), (64, 2)].map(case);
    let curve = Rows { cases: cases.iter().collect(), other_states: 0 }.curve();
    assert_eq!(curve.sizes, [8, 16, 32]);
    assert_eq!(curve.numbers, (0..9).collect::<Vec<usize>>());
    assert_eq!(curve.launches.len(), 9);
}
