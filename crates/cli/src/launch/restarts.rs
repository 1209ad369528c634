//! Cases that end their ranks: each is a failed row and is left out from then on, and new ranks measure the rest.

use std::ffi::OsString;

use ombx_core::{
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
    /// The case in which they have ended; `None` between two cases.
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

impl Early {
    /// Returns the case as a phrase of a sentence; empty between two cases.
    pub(super) fn place(&self) -> String {
        self.case.as_ref().map(|row| format!(" in {}", named(row))).unwrap_or_default()
    }
}

/// Returns benchmark and size of a row.
pub(super) fn named(row: &Measurement) -> String {
    row.bytes.map_or(row.bench.clone(), |bytes| format!("{}, {bytes} bytes", row.bench))
}

/// What is known of cases that have ended their ranks.
pub(super) struct Restarts {
    fails_fast: bool,
    /// What the next ranks measure.
    rest: Rest,
    /// Benchmarks of the ends without a measured row in between.
    in_a_row: Vec<String>,
    /// How often ranks have ended early.
    ends: u64,
}

/// What follows the early end of ranks: rows, and new ranks unless there is an error.
pub(super) struct Aftermath {
    pub(super) rows: Vec<Measurement>,
    /// Sentence about the end; `None` if the error says it.
    pub(super) sentence: String,
    pub(super) ends: bool,
}

impl Restarts {
    pub(super) fn new(job: &Job) -> Restarts {
        let rest = job.role.rest.clone().unwrap_or_default();
        Restarts { fails_fast: job.start.fail_fast, rest, in_a_row: Vec::new(), ends: 0 }
    }

    /// Begins with the first ranks of a kind in a launch.
    pub(super) fn begin(&mut self) {
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
    }

    /// Takes note of an end, and returns what follows.
    pub(super) fn add(&mut self, early: Early) -> Aftermath {
        self.ends += 1;
        if early.measured > 0 {
            self.in_a_row.clear();
        }
        self.in_a_row.push(early.bench.clone());
        let place = early.place();
        let mut rows = Vec::new();
        let run = self.rest.run.take().unwrap_or(early.run);
        self.rest =
            Rest { first: early.number, after: early.done, run: Some(run), ..self.rest.of_next_launch() };
        if let Some(case) = early.case {
            self.rest.left_out.insert(RowName::new(&case.key));
            rows.push(Measurement { outcome: Outcome::Failed(early.why.clone()), ..*case });
        }
        let of_this = self.in_a_row.iter().rev().take_while(|bench| **bench == early.bench).count();
        if of_this >= MOST_IN_A_ROW {
            let key = format!("{}/", early.bench);
            self.rest.left_out.insert(RowName::new(&key));
            (self.rest.first, self.rest.after) = (early.number + 1, None);
            let why = format!(
                "left out, because ranks have ended early in {of_this} of its cases one after the other"
            );
            rows.extend(rows.first().cloned().map(|row| {
                let empty = Measurement::new(early.bench.clone(), key, row.metric, row.ranks);
                Measurement { aggregation: row.aggregation, outcome: Outcome::Skipped(why), ..empty }
            }));
        }
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
}
