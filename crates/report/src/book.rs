//! All runs of all files in one sequence, each with a name, every row with a number that links on the page go to.

use std::collections::BTreeSet;

use ombx_core::result::{Measurement, Outcome as RowOutcome, Tally};
use ombx_results::{
    verdict,
    wire::{self, Outcome, RunWithRows},
};

use crate::Source;

/// What a page is made of.
pub(crate) struct Book<'a> {
    pub(crate) runs: Vec<Chapter<'a>>,
}

/// A run.
pub(crate) struct Chapter<'a> {
    /// Unlike that of any other.
    pub(crate) name: String,
    /// Its file.
    source: String,
    pub(crate) run: &'a RunWithRows,
    /// Which of the sets of launches it belongs to: runs of a file that differ in nothing but when they were started.
    pub(crate) set: usize,
    /// Number of its first row.
    pub(crate) first: usize,
    /// Whether its file stops in the middle of a record.
    pub(crate) cut_off: bool,
}

/// A row and its number.
#[derive(Clone, Copy)]
pub(crate) struct Numbered<'a> {
    pub(crate) at: usize,
    pub(crate) row: &'a Measurement,
}

impl<'a> Book<'a> {
    pub(crate) fn of(sources: &[Source<'a>]) -> Book<'a> {
        let (mut runs, mut first) = (Vec::new(), 0);
        for (name, file) in distinguished(sources) {
            let set = runs.len();
            for (at, run) in file.runs.iter().enumerate() {
                let several = file.runs.len() > 1;
                let launch_of =
                    file.runs[..at].iter().position(|other| are_launches(run, other)).unwrap_or(at);
                runs.push(Chapter {
                    name: if several { format!("{name}, run {}", at + 1) } else { name.clone() },
                    source: name.clone(),
                    run,
                    set: set + launch_of,
                    first,
                    cut_off: file.cut_off && at + 1 == file.runs.len(),
                });
                first += run.rows.len();
            }
        }
        Book { runs }
    }

    /// What a set of launches is called: as its file, if that has no other.
    pub(crate) fn set_name(&self, set: usize) -> &str {
        let Chapter { source, name, .. } = &self.runs[set];
        let alone =
            self.runs.iter().filter(|chapter| chapter.source == *source).all(|chapter| chapter.set == set);
        if alone { source } else { name }
    }

    /// How many sets of launches there are.
    pub(crate) fn sets(&self) -> usize {
        self.runs.iter().map(|chapter| chapter.set).collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Numbered<'a>> {
        self.runs.iter().flat_map(Chapter::rows)
    }

    /// Over all runs, counted from their rows.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.rows().for_each(|numbered| tally.add(numbered.row));
        tally
    }
}

impl<'a> Chapter<'a> {
    pub(crate) fn rows(&self) -> impl Iterator<Item = Numbered<'a>> + use<'a> {
        (self.first..).zip(&self.run.rows).map(|(at, row)| Numbered { at, row })
    }

    /// How it ended; a run that could not say so was killed.
    pub(crate) fn outcome(&self) -> Outcome {
        self.run.end.map_or(Outcome::Broken, |(outcome, _)| outcome)
    }

    /// Rows of `ombx links`.
    pub(crate) fn links(&self) -> impl Iterator<Item = Numbered<'a>> + use<'a> {
        self.rows().filter(|numbered| is_link(numbered.row))
    }
}

/// Whether a row is of `ombx links`.
pub(crate) fn is_link(row: &Measurement) -> bool {
    row.bench == verdict::BENCH
}

/// Whether a row was measured and nothing is known against its data.
pub(crate) fn is_sound(row: &Measurement) -> bool {
    row.outcome == RowOutcome::Ok
}

/// Files, numbered where several have the same name.
fn distinguished<'a>(sources: &[Source<'a>]) -> Vec<(String, &'a wire::File)> {
    let mut taken = BTreeSet::new();
    let mut name = |name: &str| {
        let copies = (2..).map(|copy| format!("{name} ({copy})"));
        std::iter::once(name.to_owned())
            .chain(copies)
            .find(|name| taken.insert(name.clone()))
            .unwrap_or_default()
    };
    sources.iter().map(|source| (name(source.name), source.file)).collect()
}

/// Whether two runs are alike in all that a curve does not tell.
fn are_launches(one: &RunWithRows, other: &RunWithRows) -> bool {
    let (a, b) = (&one.run, &other.run);
    (&a.library, &a.places, &a.env, &a.version, &a.profile)
        == (&b.library, &b.places, &b.env, &b.version, &b.profile)
}

/// `1 row`, `2 rows`, `3 launches`.
pub(crate) fn count(n: usize, what: &str) -> String {
    let plural = if what.ends_with("ch") { "es" } else { "s" };
    format!("{n} {what}{}", if n == 1 { "" } else { plural })
}
