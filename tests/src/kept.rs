//! Runs of ombx with a result file, and checks of their rows.

use std::path::PathBuf;

use ombx_record::{
    file::RunWithRows,
    result::{Check, Figure, Measurement, Outcome, RunOutcome},
};

use crate::{Done, Files, Job, results};

/// Run of ombx with a result file in a temporary directory.
#[derive(Default)]
pub struct Kept {
    /// Directory of the result file.
    pub files: Files,
}

impl Kept {
    /// Creates the directory.
    pub fn new() -> Kept {
        Kept::default()
    }

    /// Returns the path of the result file.
    pub fn out(&self) -> PathBuf {
        self.files.path("results.jsonl")
    }

    /// Returns a job of `ombx run` with these options.
    pub fn job(&self, options: &str) -> Job {
        Job::ombx("run").args(options.split_whitespace()).arg("-o").arg(self.out())
    }

    /// Reads the result file.
    pub fn run(&self) -> RunWithRows {
        results::run_of(&self.out())
    }
}

/// Runs to success and returns the checked results.
///
/// # Panics
/// The run fails, or a row is not as [`assert_good`] demands.
pub fn measured(options: &str) -> RunWithRows {
    let kept = Kept::new();
    let done = kept.job(options).run().expect(0);
    assert!(done.stderr.is_empty(), "{done}");
    let run = kept.run();
    assert_good(&run, &done);
    run
}

/// Runs to success and returns the verified results of benchmarks in which several ranks are timed.
///
/// # Panics
/// The run fails, or a row is not verified.
pub fn verified(options: &str) -> RunWithRows {
    let kept = Kept::new();
    let done = kept.job(options).run().expect(0);
    let run = kept.run();
    run.rows.iter().for_each(|row| assert_measured(row, &done));
    run
}

/// Panics unless every row is measured and verified, and that the run is complete.
pub fn assert_good(run: &RunWithRows, done: &Done) {
    for row in &run.rows {
        assert_measured(row, done);
        assert_plausible(row);
    }
    let (outcome, tally) = run.end.expect("an end record");
    assert_eq!((outcome, tally.cases as usize), (RunOutcome::Complete, run.rows.len()), "{done}");
    assert_eq!((tally.skipped, tally.failed, tally.corrupt), (0, 0, 0), "{done}");
}

/// Panics unless a row is measured and verified.
pub fn assert_measured(row: &Measurement, done: &Done) {
    let good = row.outcome == Outcome::Ok && row.check == Check::Passed;
    assert!(good, "{}: {:?}\n{done}", row.key, row.check);
}

/// Panics unless a measured row has the properties that hold on any machine. A busy machine may not resolve a difference of two times, and
/// such a row says so.
pub fn assert_plausible(row: &Measurement) {
    let key = &row.key;
    assert_eq!(row.samples.len(), 1, "{key}: one rank alone is timed");
    // The rank that sends is timed.
    let timed = u32::from(row.bench == "p2p.fan_in");
    let samples = &row.samples[0];
    assert!(samples.rank == timed && samples.batch >= 1 && !samples.elapsed_ns.is_empty(), "{key}");
    let Some(summary) = &row.summary else {
        let is_unresolved = matches!(row.figures.get("corrected_us"), Some(Figure::Unresolved(_)));
        assert!(is_unresolved, "{key} has no summary");
        return;
    };
    assert!(samples.elapsed_ns.len() == summary.n && summary.min > 0.0, "{key}: {summary:?}");
    assert!(summary.min <= summary.median && summary.median <= summary.max, "{key}: {summary:?}");
    if let Some([low, high]) = summary.ci95 {
        assert!(low <= summary.median && summary.median <= high, "{key}: {summary:?}");
    }
    // The headline follows from the raw samples: their median, or the mean of the levels of rounds.
    let times = Measurement::combine(&row.samples, row.work.expect("work").legs);
    let round = samples.rounds.map_or(times.len(), |rounds| rounds.samples as usize);
    let levels: Vec<f64> = match samples.rounds {
        Some(_) => times.chunks(round).map(level).collect(),
        None => vec![middle(&times)],
    };
    let headline = levels.iter().sum::<f64>() / levels.len() as f64;
    assert!((summary.median / headline - 1.0).abs() < 1e-9, "{key}: {headline} {}", summary.median);
}

/// Returns the median of the means of all pairs: every pair twice, and each value with itself twice.
fn level(round: &[f64]) -> f64 {
    let mut means = round.to_vec();
    for one in round {
        means.extend(round.iter().map(|other| f64::midpoint(*one, *other)));
    }
    middle(&means)
}

/// Returns the median of some values.
fn middle(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}
