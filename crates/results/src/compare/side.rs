//! Results of one side, summarised row by row while a file is read.

use std::collections::{BTreeSet, HashMap};

use ombx_core::{
    benchmark::{Figure, Metric},
    result::{Level, Measurement, Outcome, Run},
    system::performance::INSTRUCTIONS,
};

use super::{
    comparison::{CaseId, SideInfo},
    setup::Turn,
};
use crate::{
    estimate::is_within_a_launch,
    file::{Record, RunOutcome, RunWithRows},
    run_info::{is_next_launch, is_same_launch, library},
    state::Distances,
};

/// Results of all launches of one side. Raw samples are summarised at once, so that large files need little memory.
#[derive(Debug, Default)]
pub struct SideResults {
    name: String,
    label: Option<String>,
    pub(super) runs: Vec<Run>,
    /// Number of launches. A launch has a run for each kind of ranks.
    launches: usize,
    /// What is known of each launch.
    pub(super) launched: Vec<LaunchInfo>,
    /// Number of complete runs.
    pub(super) complete: usize,
    /// Why instructions were not counted, although the side was to count them.
    pub(super) no_instructions: Option<String>,
    rows: Vec<Row>,
    places: HashMap<String, usize>,
}

/// What is known of a launch beside its rows.
#[derive(Debug)]
pub(super) struct LaunchInfo {
    pub(super) distances: Distances,
    /// Number of its run, the command that started it, from 0.
    pub(super) run: usize,
    /// Its turn, if `ombx ab` started it.
    pub(super) turn: Option<Turn>,
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

/// One case of one launch.
#[derive(Debug)]
pub(super) struct Launch {
    /// Number of the launch on its side, from 0.
    pub(super) run: usize,
    /// Median in the unit of the headline figure.
    pub(super) median: f64,
    /// Logarithm of the time, up to a constant of the case.
    pub(super) log_time: f64,
    /// Logarithm of the instructions of a rank per operation; `None` if they were not counted.
    pub(super) log_instructions: Option<f64>,
    /// Code of a mark on which no verdict may rest.
    pub(super) invalid: Option<String>,
    pub(super) marks: BTreeSet<String>,
}

impl SideResults {
    /// Creates a side without launches.
    pub fn named(name: impl Into<String>) -> SideResults {
        SideResults { name: name.into(), ..SideResults::default() }
    }

    /// Sets the short name for titles.
    #[must_use]
    pub fn labelled(self, label: Option<String>) -> SideResults {
        SideResults { label, ..self }
    }

    /// Adds a record of a file.
    pub fn record(&mut self, record: Record) {
        match record {
            Record::Run(run) => self.begin(*run),
            Record::Launch(row) => self.add(&row),
            Record::End(outcome, _) => self.complete += usize::from(outcome == RunOutcome::Complete),
            // Derived from the rows of the launches.
            Record::Launched(launched) => {
                if let Some(last) = self.launched.last_mut() {
                    last.distances.after_ns = launched.core_to_core_ns;
                }
            }
            Record::Case(_) | Record::Verdict(_) => {}
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
        self.launches
    }

    /// Returns what is known of each launch.
    pub(super) fn launched(&self) -> &[LaunchInfo] {
        &self.launched
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(super) fn row(&self, key: &str) -> Option<&Row> {
        self.places.get(key).map(|at| &self.rows[*at])
    }

    pub(super) fn info(&self, default_label: &str) -> SideInfo {
        SideInfo {
            label: self.label.clone().unwrap_or_else(|| default_label.to_owned()),
            name: self.name.clone(),
            runs: self.runs.iter().map(|run| run.id.clone()).collect(),
            launches: self.launches,
            commands: self.launched.last().map_or(0, |last| last.run + 1),
            libraries: self.runs.iter().map(library).collect(),
        }
    }

    fn begin(&mut self, run: Run) {
        let of_last = self.runs.last().is_some_and(|last| is_same_launch(last, &run));
        if !of_last {
            self.launches += 1;
            let follows = self.runs.last().is_some_and(|last| is_next_launch(last, &run));
            let number = self.launched.last().map_or(0, |last| last.run + usize::from(!follows));
            let distances = Distances::of_run(&run);
            self.launched.push(LaunchInfo { distances, run: number, turn: Turn::of_run(&run) });
        }
        self.runs.push(run);
    }

    fn add(&mut self, row: &Measurement) {
        if let Some(Figure::Unresolved(why)) = row.figures.get(INSTRUCTIONS) {
            self.no_instructions.get_or_insert_with(|| why.clone());
        }
        let at = *self.places.entry(row.key.clone()).or_insert_with(|| {
            self.rows.push(Row { id: case_id(row), launches: Vec::new(), missing: None, failed: None });
            self.rows.len() - 1
        });
        let case = &mut self.rows[at];
        let run = self.launches.saturating_sub(1);
        match &row.outcome {
            Outcome::Ok => match launch(row, run) {
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
    /// Returns the row with instructions in the place of times; `None` if a launch did not count them. Marks are about times.
    pub(super) fn of_instructions(&self) -> Option<Row> {
        let of_launch = |launch: &Launch| {
            let log_time = launch.log_instructions?;
            let marks = BTreeSet::new();
            Some(Launch {
                run: launch.run,
                median: log_time.exp(),
                log_time,
                log_instructions: None,
                invalid: None,
                marks,
            })
        };
        let launches: Option<Vec<Launch>> = self.launches.iter().map(of_launch).collect();
        let id = CaseId { metric: Metric::Latency, unit: "instructions", ..self.id.clone() };
        Some(Row { id, launches: launches?, missing: None, failed: None })
    }

    pub(super) fn measured(&self) -> bool {
        !self.launches.is_empty()
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
fn launch(row: &Measurement, run: usize) -> Option<Launch> {
    let (summary, work) = (row.summary.as_ref()?, row.work?);
    let leg_ns = summary.median;
    let median = match row.metric {
        Metric::Latency => leg_ns / 1e3,
        Metric::Bandwidth if moves_bytes(row) => work.bytes as f64 * 1e3 / (leg_ns * work.legs as f64),
        Metric::Bandwidth => work.ops as f64 * 1e9 / (leg_ns * work.legs as f64),
    };
    (median.is_finite() && median > 0.0).then(|| Launch {
        run,
        median,
        log_time: if row.metric == Metric::Latency { median.ln() } else { -median.ln() },
        log_instructions: match row.figures.get(INSTRUCTIONS) {
            Some(Figure::Value(count)) if *count > 0.0 => Some(count.ln()),
            _ => None,
        },
        invalid: row
            .marks(Level::Invalid)
            .find(|mark| !is_within_a_launch(mark))
            .map(|mark| mark.code.clone()),
        marks: row.doubts().map(|mark| mark.code.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    /// A launch starts ranks of several kinds one after the other: over sockets, and with the threads of MPI or without.
    #[test]
    fn runs_of_one_launch_count_once() {
        let run = |launch: u32, fabric: &str, benchmarks: &str| {
            let RunWithRows { mut run, rows, end, .. } = golden();
            run.fabric = fabric.into();
            for (option, value) in [("launch", launch), ("order", 90 + launch)] {
                run.plan.insert(option.into(), value.to_string());
            }
            run.plan.insert("benchmarks".into(), benchmarks.into());
            RunWithRows { run, rows, end, verdict: None }
        };
        let mut side = SideResults::named("x");
        for launch in 1..=2 {
            side.run(&run(launch, "mpi", "p2p.latency"));
            side.run(&run(launch, "mpi", "p2p.latency_mt"));
            side.run(&run(launch, "sockets", "sockets.latency"));
        }
        assert_eq!(side.count(), 2);
        // The same benchmarks again are another job.
        side.run(&run(2, "sockets", "sockets.latency"));
        assert_eq!(side.count(), 3);
    }
}
