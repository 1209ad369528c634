//! The runs of a page, with the numbers of their rows.

use std::collections::BTreeSet;

use ombx_estimate::number::Units;
use ombx_links::verdict::{LinkSweep, SweptFile, SweptRun};
use ombx_record::{
    file::RunWithRows,
    link,
    result::{Measurement, Outcome, RunOutcome, Tally},
};

use crate::Source;

/// All runs of a page.
pub(crate) struct RunList<'a> {
    pub(crate) entries: Vec<RunEntry<'a>>,
    /// Units of times and bandwidths.
    pub(crate) units: Units,
}

/// One run: the launches of one setup as one, or a sweep over links.
pub(crate) struct RunEntry<'a> {
    /// Unique name.
    pub(crate) name: String,
    pub(crate) swept: &'a SweptRun,
    /// Its run, without the links in rounds.
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
    pub(crate) fn new(sources: &[Source<'a>], units: Units) -> RunList<'a> {
        let (mut entries, mut first) = (Vec::new(), 0);
        for (name, file) in with_unique_names(sources) {
            for (at, swept) in file.runs.iter().enumerate() {
                let run = &swept.run;
                let several = file.runs.len() > 1;
                entries.push(RunEntry {
                    name: if several { format!("{name}, run {}", at + 1) } else { name.clone() },
                    swept,
                    run,
                    first,
                    cut_off: file.cut_off && at + 1 == file.runs.len(),
                });
                first += run.rows.len();
            }
        }
        RunList { entries, units }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = NumberedRow<'a>> {
        self.entries.iter().flat_map(RunEntry::rows)
    }

    /// Returns the links in rounds of each run.
    pub(crate) fn links_in_rounds(&self) -> impl Iterator<Item = &LinkSweep> {
        self.entries.iter().filter_map(|entry| entry.swept.links.as_deref())
    }

    /// Returns the run of a row, by the number of the row.
    pub(crate) fn run_of(&self, row: usize) -> Option<&RunEntry<'a>> {
        self.entries.iter().rfind(|entry| entry.first <= row)
    }

    /// Counts the rows of all runs by outcome.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.rows().for_each(|numbered| tally.add(numbered.row));
        tally.cases += self.links_in_rounds().map(|links| links.row_count() as u64).sum::<u64>();
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

    /// Returns whether the run has links.
    pub(crate) fn has_links(&self) -> bool {
        self.swept.links.is_some() || self.run.rows.iter().any(is_link)
    }
}

/// Returns whether a row belongs to `ombx links`.
pub(crate) fn is_link(row: &Measurement) -> bool {
    row.bench == link::BENCH
}

/// Returns whether a row was measured and its data arrived correctly.
pub(crate) fn is_ok(row: &Measurement) -> bool {
    row.outcome == Outcome::Ok
}

/// Appends a number to names that several files share.
fn with_unique_names<'a>(sources: &[Source<'a>]) -> Vec<(String, &'a SweptFile)> {
    let mut taken = BTreeSet::new();
    sources.iter().map(|source| (unique(source.name, &mut taken), source.file)).collect()
}

/// Returns a name that is not taken, if need be with a number, and takes it.
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let copies = (2..).map(|copy| format!("{name} ({copy})"));
    std::iter::once(name.to_owned()).chain(copies).find(|name| taken.insert(name.clone())).unwrap_or_default()
}
