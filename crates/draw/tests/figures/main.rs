//! Figures of known data: symbols and lines are at their values, and files depend on nothing else.

#[cfg(feature = "files")]
mod files;
mod places;

use ombx_draw::{Drawing, Input, Kind, Options, PlotError, draw};
use ombx_estimate::samples::{CaseSamples, SampleStore};
use ombx_record::{
    file::{self, RunWithRows},
    result::{Measurement, Metric, Run, Samples, Work},
    stats::Summary,
};

fn run() -> Run {
    let golden = include_str!("../../../record/tests/golden/one_launch.jsonl");
    file::read(golden.as_bytes()).unwrap().runs.remove(0).run
}

/// Returns the row of one launch with these times of a message, in nanoseconds.
fn row(bytes: u64, times: &[u64]) -> Measurement {
    let samples = vec![Samples { batch: 1, elapsed_ns: times.to_vec(), ..Samples::default() }];
    Measurement {
        bytes: Some(bytes),
        work: Some(Work { bytes, ops: 1, legs: 1 }),
        summary: Summary::of_batches(&Measurement::combine(&samples, 1)),
        samples,
        ..Measurement::new("p2p.latency", format!("p2p.latency/bytes={bytes}"), Metric::Latency, 2)
    }
}

/// Returns cases from the rows of launches.
fn cases(launches: &[Vec<Measurement>]) -> Vec<CaseSamples> {
    let mut store = SampleStore::default();
    for rows in launches {
        store.launch(&RunWithRows { rows: rows.clone(), ..RunWithRows::new(run()) });
    }
    store.into_cases()
}

fn figure(kind: Kind, launches: &[Vec<Measurement>], options: &Options<'_>) -> Drawing {
    let cases = cases(launches);
    draw(kind, &[Input { label: "one", cases: &cases }], options).unwrap()
}

/// Returns one launch of four sizes, whose times grow by 10 when sizes grow by 16.
fn power_law() -> Vec<Measurement> {
    [(1, 1_000), (16, 10_000), (256, 100_000), (4096, 1_000_000)]
        .map(|(bytes, ns)| row(bytes, &(0..60).map(|i| ns * (998 + i % 5) / 1000).collect::<Vec<_>>()))
        .to_vec()
}

#[test]
fn results_that_do_not_fit_are_errors() {
    let error = |kind, rows: &[_]| {
        let cases = cases(&[rows.to_vec()]);
        draw(kind, &[Input { label: "one", cases: &cases }], &Options::default()).unwrap_err()
    };
    assert!(error(Kind::Curve, &[row(8, &[1000; 20])]).to_string().contains("several message sizes"));
    assert!(error(Kind::Rate, &power_law()).to_string().contains("no row has an offered rate"));
    assert!(error(Kind::Launches, &power_law()).to_string().contains("one launch only"));
    assert!(error(Kind::Cdf, &[]).to_string().contains("no measured rows"));
    let many: Vec<_> = (0..9)
        .map(|at| {
            let mut row = row(8, &[1000; 20]);
            (row.bench, row.key) = (format!("p2p.{at}"), format!("p2p.{at}/bytes=8"));
            row
        })
        .collect();
    assert!(matches!(error(Kind::Violin, &many), PlotError::TooMany(9)));
}

#[test]
fn too_many_sizes_are_thinned_and_said() {
    let rows: Vec<_> = (0..20).map(|at| row(1 << at, &[1000; 20])).collect();
    assert_eq!(figure(Kind::Cdf, std::slice::from_ref(&rows), &Options::default()).drawn, Some((7, 20)));
    assert_eq!(figure(Kind::Curve, &[rows], &Options::default()).drawn, None);
}
