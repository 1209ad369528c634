//! Results of one side, summarised row by row while a file is read.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::comparison::{CaseId, SideInfo};
use crate::{
    compare::rank_sum,
    file::{Record, RunOutcome, RunWithRows},
    run_info::library,
};
use ombx_core::{
    benchmark::Metric,
    result::{Measurement, Outcome, Run},
    stats,
};

/// Maximum number of values kept per launch. More samples are replaced by medians of blocks.
const MAX_VALUES: usize = 100;

/// Codes of marks that make the result of a single launch unreliable.
const UNRELIABLE: [&str; 7] =
    ["preempted", "waited", "stolen", "not_converged", "no_interval", "autocorrelated", "bimodal"];

/// Results of all launches of one side. Raw samples are summarised at once, so that large files need little memory.
#[derive(Debug, Default)]
pub struct SideResults {
    name: String,
    pub(super) runs: Vec<Run>,
    /// Number of complete runs.
    pub(super) complete: usize,
    /// Start time of the current run.
    started: Arc<str>,
    rows: Vec<Row>,
    places: HashMap<String, usize>,
}

/// One case of one side.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: CaseId,
    pub(super) launches: Vec<Launch>,
    /// Why the last launch without a figure has none.
    pub(super) missing: Option<String>,
    /// Reason of the last failure.
    pub(super) failed: Option<String>,
}

/// One case of one launch, in the unit of the headline figure.
#[derive(Debug)]
pub(super) struct Launch {
    run: usize,
    /// Start time of its run.
    pub(super) started: Arc<str>,
    pub(super) median: f64,
    /// Independent values. `None` if samples depend on each other even in large blocks.
    pub(super) values: Option<Vec<f64>>,
    pub(super) marks: BTreeSet<String>,
}

impl SideResults {
    /// Creates a side without launches.
    pub fn named(name: impl Into<String>) -> SideResults {
        SideResults { name: name.into(), ..SideResults::default() }
    }

    /// Adds a record of a file.
    pub fn record(&mut self, record: Record) {
        match record {
            Record::Run(run) => self.begin(*run),
            Record::Launch(row) => self.add(&row),
            Record::End(outcome, _) => self.complete += usize::from(outcome == RunOutcome::Complete),
            // Derived from the rows of the launches.
            Record::Case(_) => {}
        }
    }

    /// Adds a whole run.
    pub fn run(&mut self, run: &RunWithRows) {
        self.begin(run.run.clone());
        run.rows.iter().for_each(|row| self.add(row));
        self.complete += usize::from(matches!(run.end, Some((RunOutcome::Complete, _))));
    }

    /// Returns the number of launches.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(super) fn row(&self, key: &str) -> Option<&Row> {
        self.places.get(key).map(|at| &self.rows[*at])
    }

    pub(super) fn info(&self) -> SideInfo {
        SideInfo {
            name: self.name.clone(),
            runs: self.runs.iter().map(|run| run.id.clone()).collect(),
            libraries: self.runs.iter().map(library).collect(),
        }
    }

    fn begin(&mut self, run: Run) {
        self.started = run.started.as_str().into();
        self.runs.push(run);
    }

    fn add(&mut self, row: &Measurement) {
        let at = *self.places.entry(row.key.clone()).or_insert_with(|| {
            self.rows.push(Row { id: case_id(row), launches: Vec::new(), missing: None, failed: None });
            self.rows.len() - 1
        });
        let case = &mut self.rows[at];
        let run = self.runs.len();
        match &row.outcome {
            Outcome::Ok => match launch(row, run, &self.started) {
                // A repeated row counts once: all its rows belong to the same launch.
                Some(launch) if case.launches.last().is_none_or(|last| last.run != run) => {
                    case.launches.push(launch);
                }
                Some(_) => {}
                None => case.missing = Some("its time is below the resolution of the clock".into()),
            },
            Outcome::Skipped(why) => case.missing = Some(format!("skipped: {why}")),
            Outcome::Failed(why) => {
                case.missing = Some(format!("failed: {why}"));
                case.failed = Some(why.clone());
            }
        }
    }
}

impl Row {
    pub(super) fn measured(&self) -> bool {
        !self.launches.is_empty()
    }
}

impl Launch {
    /// Returns the 95 % interval of the median as logarithms.
    pub(super) fn interval(&self) -> Option<[f64; 2]> {
        let mut values = self.values.clone()?;
        values.sort_by(f64::total_cmp);
        let (low, high) = stats::order_bounds(values.len(), 0.5)?;
        Some([values[low - 1].min(self.median).ln(), values[high - 1].max(self.median).ln()])
    }
}

fn case_id(row: &Measurement) -> CaseId {
    CaseId {
        bench: row.bench.clone(),
        key: row.key.clone(),
        metric: row.metric,
        unit: if row.metric == Metric::Bandwidth && !moves_bytes(row) {
            "messages/s"
        } else {
            row.metric.unit()
        },
        bytes: row.bytes,
        depth: row.depth,
        pairs: row.pairs,
        axes: row.axes.clone(),
    }
}

fn moves_bytes(row: &Measurement) -> bool {
    row.work.is_some_and(|work| work.bytes > 0)
}

/// Converts a row to the unit of its headline figure. Returns `None` if the time is not above 0.
fn launch(row: &Measurement, run: usize, started: &Arc<str>) -> Option<Launch> {
    let (summary, work) = (row.summary.as_ref()?, row.work?);
    let figure = |leg_ns: f64| match row.metric {
        Metric::Latency => leg_ns / 1e3,
        Metric::Bandwidth if moves_bytes(row) => work.bytes as f64 * 1e3 / (leg_ns * work.legs as f64),
        Metric::Bandwidth => work.ops as f64 * 1e9 / (leg_ns * work.legs as f64),
    };
    let usable = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
    let samples = Measurement::combine(&row.samples, work.legs);
    let values = match samples.is_empty() {
        true => None,
        false => stats::independent(&samples, MAX_VALUES),
    };
    let values =
        values.and_then(|v| v.into_iter().map(|ns| usable(figure(ns))).collect::<Option<Vec<f64>>>());
    let codes = row.doubts().map(|mark| mark.code.clone());
    Some(Launch {
        run,
        started: Arc::clone(started),
        median: usable(figure(summary.median))?,
        values,
        marks: codes.filter(|code| UNRELIABLE.contains(&code.as_str())).collect(),
    })
}

/// Returns the logarithms of the values of all launches, or `None` if no launch has values.
fn pooled(launches: &[Launch]) -> Option<Vec<f64>> {
    let all: Vec<f64> =
        launches.iter().filter_map(|launch| launch.values.as_ref()).flatten().map(|x| x.ln()).collect();
    (!all.is_empty()).then_some(all)
}

/// Returns the Mann-Whitney p value of the samples, after the new side is shifted back by `allowed` (a logarithm).
pub(super) fn by_samples(base: &[Launch], new: &[Launch], allowed: f64) -> Option<f64> {
    let (a, b) = (pooled(base)?, pooled(new)?);
    let moved: Vec<f64> = b.iter().map(|x| x - allowed).collect();
    rank_sum::mann_whitney(&a, &moved)
}
