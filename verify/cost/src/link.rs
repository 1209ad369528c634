//! Runs and rounds of links that nobody measures: their times come from models.

use ombx_record::{
    event::Round,
    link::{BENCH, key_of_link},
    result::{Check, ClockFacts, Measurement, Metric, Place, Run, Work},
};

/// Message size of the links.
pub const BYTES: u64 = 8;

/// Returns the record of a run with a rank on each of these hosts.
pub fn run(id: &str, started: String, hosts: impl Iterator<Item = String>) -> Run {
    let place = |host| Place { host, cpus: "0".into(), online: 2, governor: None, quota: None };
    Run {
        id: id.to_owned(),
        argv: vec!["ombx".into(), "run".into()],
        started,
        version: "1.0.0".into(),
        profile: "release".into(),
        fabric: "mpi".into(),
        library: "no library".into(),
        places: hosts.map(place).collect(),
        clock: ClockFacts { source: "tsc".into(), resolution_ns: 1, overhead_ns: 20 },
        plan: Default::default(),
        env: Default::default(),
        software: Default::default(),
        hosts: Vec::new(),
        loaded: None,
        launched: None,
    }
}

/// Returns what the rows of all links share.
pub fn shared() -> Measurement {
    let axes = [("pattern".to_owned(), "semidirectional".to_owned())].into();
    let row = Measurement {
        bytes: Some(BYTES),
        work: Some(Work { bytes: 2 * BYTES, ops: 2, legs: 2 }),
        check: Check::Passed,
        checked: 20,
        ..Measurement::new(BENCH, key_of_link(&axes, Some(BYTES), None), Metric::Latency, 2)
    };
    Measurement { axes, ..row }
}

/// Returns the round of these links.
pub fn round(number: u32, links: &[[u32; 2]], ns: impl Fn([u32; 2]) -> f32) -> Round {
    Round {
        row: shared(),
        number: Some(number),
        from: links.iter().map(|link| link[0]).collect(),
        to: links.iter().map(|link| link[1]).collect(),
        median_ns: links.iter().map(|link| ns(*link)).collect(),
        marks: Vec::new(),
    }
}

/// Returns a value that is nearly normally distributed: the sum of 12 uniform numbers, relative to its mean.
pub fn normal(seed: u64, kind: u64) -> f64 {
    let mut x = seed ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut uniform = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mixed = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    };
    uniform();
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// Returns a value that is nearly normally distributed, of a link in one direction.
pub fn normal_of(from: u32, to: u32, kind: u64) -> f64 {
    normal(u64::from(from) << 32 | u64::from(to), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_normal() {
        let values: Vec<f64> = (0..10_000).map(|seed| normal(seed << 7, 1)).collect();
        let mean = values.iter().sum::<f64>() / 1e4;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }
}
