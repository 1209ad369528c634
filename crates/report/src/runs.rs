//! All runs of all files in one list: the launches of one setup, or a sweep over links. Runs have unique names, rows have unique
//! numbers.

use std::collections::BTreeSet;

use ombx_core::{
    result::{Measurement, Outcome, Tally},
    unit::Bytes,
};
use ombx_results::{
    file::{ResultFile, RunOutcome, RunWithRows},
    verdict,
};

use crate::Source;

/// All runs of a page.
pub(crate) struct RunList<'a> {
    pub(crate) entries: Vec<RunEntry<'a>>,
}

/// One run: the launches of one setup as one, or a sweep over links.
pub(crate) struct RunEntry<'a> {
    /// Unique name.
    pub(crate) name: String,
    pub(crate) run: &'a RunWithRows,
    /// Number of the first row.
    pub(crate) first: usize,
    /// Whether the file ends inside a record.
    pub(crate) cut_off: bool,
}

/// A row with its number. Links on the page refer to the number.
#[derive(Clone, Copy)]
pub(crate) struct NumberedRow<'a> {
    pub(crate) at: usize,
    pub(crate) row: &'a Measurement,
}

impl<'a> RunList<'a> {
    pub(crate) fn of(sources: &[Source<'a>]) -> RunList<'a> {
        let (mut entries, mut first) = (Vec::new(), 0);
        for (name, file) in with_unique_names(sources) {
            for (at, run) in file.runs.iter().enumerate() {
                let several = file.runs.len() > 1;
                entries.push(RunEntry {
                    name: if several { format!("{name}, run {}", at + 1) } else { name.clone() },
                    run,
                    first,
                    cut_off: file.cut_off && at + 1 == file.runs.len(),
                });
                first += run.rows.len();
            }
        }
        RunList { entries }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = NumberedRow<'a>> {
        self.entries.iter().flat_map(RunEntry::rows)
    }

    /// Returns the run of a row, by the number of the row.
    pub(crate) fn run_of(&self, row: usize) -> Option<&RunEntry<'a>> {
        self.entries.iter().rfind(|entry| entry.first <= row)
    }

    /// Counts the rows of all runs by outcome.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.rows().for_each(|numbered| tally.add(numbered.row));
        tally
    }
}

impl<'a> RunEntry<'a> {
    pub(crate) fn rows(&self) -> impl Iterator<Item = NumberedRow<'a>> + use<'a> {
        (self.first..).zip(&self.run.rows).map(|(at, row)| NumberedRow { at, row })
    }

    /// Returns how the run ended. A run without an end record was killed and counts as broken.
    pub(crate) fn outcome(&self) -> RunOutcome {
        self.run.end.map_or(RunOutcome::Broken, |(outcome, _)| outcome)
    }

    /// Returns the number of launches that its rows come from.
    pub(crate) fn launches(&self) -> usize {
        self.run.rows.iter().map(Measurement::launch_count).max().unwrap_or(1).max(1)
    }

    /// Returns whether it is a run of `ombx links`.
    pub(crate) fn is_sweep(&self) -> bool {
        self.run.is_sweep()
    }

    /// Returns the rows of `ombx links`.
    pub(crate) fn links(&self) -> impl Iterator<Item = &'a Measurement> + use<'a> {
        self.run.rows.iter().filter(|row| is_link(row))
    }
}

/// Returns whether a row belongs to `ombx links`.
pub(crate) fn is_link(row: &Measurement) -> bool {
    row.bench == verdict::BENCH
}

/// Returns whether a row was measured and its data arrived correctly.
pub(crate) fn is_ok(row: &Measurement) -> bool {
    row.outcome == Outcome::Ok
}

/// Appends a number to names that several files share.
fn with_unique_names<'a>(sources: &[Source<'a>]) -> Vec<(String, &'a ResultFile)> {
    let mut taken = BTreeSet::new();
    let mut unique = |name: &str| {
        let copies = (2..).map(|copy| format!("{name} ({copy})"));
        std::iter::once(name.to_owned())
            .chain(copies)
            .find(|name| taken.insert(name.clone()))
            .unwrap_or_default()
    };
    sources.iter().map(|source| (unique(source.name), source.file)).collect()
}

/// Formats a count with its noun: `1 row`, `2 rows`, `3 launches`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{n} {noun}{}", if n == 1 { "" } else { plural })
}

/// Formats a message size with its noun: `1 byte`, `64K bytes`.
pub(crate) fn of_bytes(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{} bytes", Bytes(bytes)) }
}
