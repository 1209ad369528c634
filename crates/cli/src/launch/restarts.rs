//! Cases that end their ranks: each is a failed row and is left out from then on, and new ranks measure the rest.

use std::{collections::BTreeSet, ffi::OsString};

use ombx_core::{
    benchmark::Benchmark,
    measure::plan::{Rest, RowName},
    result::{Measurement, Outcome},
};

use crate::{arguments::role, job::Job};

/// Benchmarks in a row that end their ranks, and end the command with that; cases in a row of one benchmark, of which no further case is
/// tried then.
const MOST_IN_A_ROW: usize = 3;
/// Cases that are left out at most: the list is an argument of every rank.
const MOST: usize = 1500;

/// Ranks that have ended before all their rows had arrived.
pub(super) struct Early {
    /// Why they have ended.
    pub(super) why: String,
    /// Whether a rank has printed why.
    pub(super) is_said: bool,
    /// The case in which they have ended; `None` outside of cases.
    pub(super) case: Option<Box<Measurement>>,
    /// Number of the benchmark that ran, in the order of the launch.
    pub(super) number: usize,
    /// The last case of this benchmark whose rows have arrived.
    pub(super) done: Option<RowName>,
    /// Its name.
    pub(super) bench: String,
    /// Run of these ranks.
    pub(super) run: String,
    /// Number of rows that were measured.
    pub(super) measured: u64,
}

/// Returns benchmark and size of a row.
pub(super) fn named(row: &Measurement) -> String {
    row.bytes.map_or(row.bench.clone(), |bytes| format!("{}, {bytes} bytes", row.bench))
}

/// Rows of the benchmark that runs which have arrived in this launch, from all ranks that have measured it.
#[derive(Default)]
pub(super) struct Arrived {
    /// Number of the benchmark in the order of the launch.
    number: usize,
    rows: BTreeSet<RowName>,
}

impl Arrived {
    /// Takes note of the benchmark that runs.
    pub(super) fn enter(&mut self, number: usize) {
        if number != self.number {
            *self = Arrived { number, ..Arrived::default() };
        }
    }

    /// Adds a row. Returns whether it has not arrived before: new ranks may repeat the rows of earlier ones.
    pub(super) fn add(&mut self, key: &str) -> bool {
        self.rows.insert(RowName::new(key))
    }
}

/// What is known of cases that have ended their ranks.
pub(super) struct Restarts {
    fails_fast: bool,
    /// Benchmarks of the job, and its number of ranks.
    benches: Vec<&'static Benchmark>,
    ranks: u32,
    pub(super) arrived: Arrived,
    /// What the next ranks measure.
    rest: Rest,
    /// Benchmarks of the ends without a measured row in between.
    in_a_row: Vec<String>,
    /// How many of them were outside of cases since the last one inside.
    between_cases: usize,
    /// How often ranks have ended early.
    ends: u64,
}

/// What follows the early end of ranks: rows, and new ranks unless there is an error.
pub(super) struct Aftermath {
    pub(super) rows: Vec<Measurement>,
    /// Sentence about the end.
    pub(super) sentence: String,
    pub(super) ends: bool,
}

impl Restarts {
    pub(super) fn new(job: &Job) -> Restarts {
        let rest = job.role.rest.clone().unwrap_or_default();
        let benches = job.work.choices().into_iter().map(|choice| choice.bench).collect();
        Restarts {
            fails_fast: job.start.fail_fast,
            benches,
            ranks: job.extent.ranks,
            arrived: Arrived::default(),
            rest,
            in_a_row: Vec::new(),
            between_cases: 0,
            ends: 0,
        }
    }

    /// Begins with the first ranks of a kind in a launch.
    pub(super) fn begin(&mut self) {
        self.arrived = Arrived::default();
        self.rest = self.rest.of_next_launch();
    }

    /// Returns the argument of the next ranks; `None` if they measure everything.
    pub(super) fn argument(&self) -> Option<OsString> {
        (self.rest != Rest::default()).then(|| OsString::from(format!("{}{}", role::REST, self.rest)))
    }

    /// Returns how often ranks have ended early.
    pub(super) fn ends(&self) -> u64 {
        self.ends
    }

    /// Takes note of ranks that have measured everything that was left.
    pub(super) fn completed(&mut self) {
        self.in_a_row.clear();
        self.between_cases = 0;
    }

    /// Takes note of an end, and returns what follows.
    pub(super) fn add(&mut self, early: Early) -> Aftermath {
        self.ends += 1;
        if early.measured > 0 {
            self.completed();
        }
        self.in_a_row.push(early.bench.clone());
        self.between_cases = if early.case.is_none() { self.between_cases + 1 } else { 0 };
        let of_this = self.in_a_row.iter().rev().take_while(|bench| **bench == early.bench).count();
        let is_first = self.arrived.rows.is_empty();
        // Ranks that have ended between two cases may have done so by chance once; those before the first case would do so again.
        let is_stuck = early.case.is_none() && (is_first || self.between_cases.min(of_this) > 1);
        let place = match &early.case {
            Some(row) => format!(" in {}", named(row)),
            None if is_first => format!(" before the first case of {}", early.bench),
            None => format!(" between cases of {}", early.bench),
        };
        let mut rows = Vec::new();
        let run = self.rest.run.take().unwrap_or(early.run);
        // Ranks without a new row of the benchmark have begun after the last row of earlier ones.
        let earlier = self.rest.after.filter(|_| self.rest.first == early.number);
        let after = early.done.or(earlier);
        self.rest = Rest { first: early.number, after, run: Some(run), ..self.rest.of_next_launch() };
        if let Some(case) = early.case {
            self.rest.left_out.insert(RowName::new(&case.key));
            rows.push(Measurement { outcome: Outcome::Failed(early.why.clone()), ..*case });
        }
        if is_stuck || of_this >= MOST_IN_A_ROW {
            (self.rest.first, self.rest.after) = (early.number + 1, None);
            let outcome = if is_stuck {
                Outcome::Failed(format!("{}{place}", early.why))
            } else {
                Outcome::Skipped(format!(
                    "left out, because ranks have ended early in {of_this} of its cases one after the other"
                ))
            };
            rows.extend(self.whole(&early.bench, outcome));
        }
        rows.retain(|row| self.arrived.add(&row.key));
        let mut benches = self.in_a_row.clone();
        benches.dedup();
        let what =
            if early.is_said { format!("ranks ended early{place}") } else { format!("{}{place}", early.why) };
        let is_end =
            |why: String| Aftermath { sentence: format!("{what}{why}"), ends: true, rows: rows.clone() };
        if self.fails_fast {
            return is_end(String::new());
        }
        if benches.len() >= MOST_IN_A_ROW {
            let names = benches.join(", ");
            return is_end(format!(
                "; {} benchmarks in a row have ended their ranks ({names}), so that no further one is tried",
                benches.len()
            ));
        }
        if self.rest.left_out.len() > MOST {
            return is_end(format!("; more than {MOST} cases have ended their ranks"));
        }
        let sentence = format!("{what}; new ranks measure what is left");
        Aftermath { rows, sentence, ends: false }
    }

    /// Leaves a benchmark out from now on, and returns its row.
    fn whole(&mut self, name: &str, outcome: Outcome) -> Option<Measurement> {
        let bench = self.benches.iter().find(|bench| bench.name == name)?;
        let key = format!("{name}/");
        self.rest.left_out.insert(RowName::new(&key));
        let empty = Measurement::new(name, key, bench.described.metric, self.ranks);
        Some(Measurement { aggregation: bench.ranks.layout.aggregation(), outcome, ..empty })
    }
}
