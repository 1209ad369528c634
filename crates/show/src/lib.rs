//! Output formats: each module writes runs and rows to a writer in one format.
//!
//! A table or a column is changed here and nowhere else. The crate computes no figure of a row and reads no file.
//!
//! # Compare two result files
//!
//! ```
//! use ombx_compare::{Comparison, Settings, SideResults};
//! use ombx_record::file;
//!
//! # fn main() -> Result<(), file::ReadError> {
//! let mut sides = ["before", "after"].map(SideResults::named);
//! for (side, path) in sides.iter_mut().zip(["../record/tests/golden/one_launch.jsonl"; 2]) {
//!     file::open(path)?.runs.iter().for_each(|run| side.run(run));
//! }
//! let comparison = Comparison::new(&sides[0], &sides[1], Settings::default());
//! let answer = ombx_show::compare::sentence(&comparison);
//! assert_eq!(answer, "undecided in both cases: about 4 runs a side could decide them");
//! # Ok(())
//! # }
//! ```

mod broadcasts;
pub mod compare;
mod csv;
mod document;
mod fields;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod history;
mod links;
pub mod methods;
pub mod model;
pub mod monitoring;
mod openmetrics;
mod overhead;
pub mod provenance;
mod table;

use std::{
    borrow::Cow,
    io::{Result, Write},
};

use anstyle::{AnsiColor, Style};
use ombx_estimate::{number::Units, percentiles::Percentiles};
use ombx_record::{
    event::Event,
    order::each_once,
    result::{ClockFacts, Measurement, Metric},
    stats::Summary,
};

pub use self::{
    broadcasts::Broadcasts,
    csv::{Csv, LinksCsv},
    document::{Document, Markup},
    links::{Form as LinksForm, Links, LinksSummary, map_so_far, status as links_status},
    openmetrics::{CheckedLimit, OpenMetrics},
    overhead::Overhead,
    table::{
        FormattedRow, ONE_LAUNCH, Scope, Table,
        cells::{wrapped, wrapped_at},
        columns, format_row, other_states, titles,
    },
};

/// Writes runs in one format, row by row or in groups of rows.
pub trait Renderer {
    /// Takes an event of a run, and may write it later. Events that no file keeps may be left out. The verdict on links is known, and arrives,
    /// before the end of the last run.
    ///
    /// # Errors
    /// The format cannot be written.
    fn event(&mut self, out: &mut dyn Write, event: &Event<'_>) -> Result<()>;
    /// Ends the output. Formats that combine several runs write here.
    ///
    /// # Errors
    /// The format cannot be written.
    fn finish(&mut self, _out: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

/// Metrics of tables.
const METRICS: [Metric; 2] = [Metric::Latency, Metric::Bandwidth];
/// Titles of columns that say what a row is.
const LABELS: [&str; 3] = ["bytes", "from", "to"];

/// Percentile that tables show by default.
const USUAL: f64 = 99.0;

/// Units, percentiles and columns of tables and CSV.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Units of times and rates.
    pub units: Units,
    /// Percentiles instead of the usual ones.
    pub percentiles: Percentiles,
    /// Names of columns in their order, or none for all.
    pub columns: Vec<String>,
}

impl Shown {
    /// Returns a row with the chosen percentiles, which come from its raw samples unless it has them already.
    fn complete<'r>(&self, row: &'r Measurement, clock: Option<&ClockFacts>) -> Cow<'r, Measurement> {
        let lacks = row.summary.as_ref().is_some_and(|summary| summary.chosen.is_empty());
        match clock.filter(|_| lacks && !self.percentiles.is_empty()) {
            None => Cow::Borrowed(row),
            Some(clock) => {
                let mut complete = row.clone();
                self.percentiles.take(&mut complete, row, clock);
                Cow::Owned(complete)
            }
        }
    }

    /// Returns whether a name is that of a column, or the first words of its title.
    fn names(name: &str, title: &str) -> bool {
        let (name, title) = (name.to_lowercase(), title.to_lowercase());
        title.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }

    /// Returns the positions of the chosen columns, each once. A table without one of them has its counterpart: of times the table of a
    /// bandwidth has rates. A table without any chosen figure keeps its headline.
    fn positions(&self, titles: &[String]) -> Vec<usize> {
        if self.columns.is_empty() {
            return (0..titles.len()).collect();
        }
        let of = |name: &str| -> Vec<usize> {
            (0..titles.len()).filter(|at| Shown::names(name, &titles[*at])).collect()
        };
        let found: Vec<Vec<usize>> = self.columns.iter().map(|name| of(name)).collect();
        let lacks_some = found.iter().any(Vec::is_empty);
        let with_counterparts = found.into_iter().zip(&self.columns).flat_map(|(found, name)| {
            if found.is_empty() { self.counterpart(name).map_or(Vec::new(), |name| of(&name)) } else { found }
        });
        let mut positions = each_once(with_counterparts);
        let is_figure = |at: &usize| !LABELS.contains(&titles[*at].as_str());
        if lacks_some && !positions.iter().any(is_figure) {
            positions.extend(METRICS.into_iter().flat_map(|metric| of(self.units.name(metric))));
        }
        positions
    }

    /// Returns the name of the column that a table of the other metric has in place of one of this name.
    fn counterpart(&self, name: &str) -> Option<String> {
        let [time, rate] = METRICS.map(|metric| self.units.name(metric));
        if let Some((_, other)) = [(time, rate), (rate, time)].iter().find(|(one, _)| Shown::names(name, one))
        {
            return Some((*other).to_owned());
        }
        let percentile = name.split(' ').next()?.strip_prefix(['p', 'P'])?.parse().ok()?;
        Some(percentile_name(Metric::Bandwidth, percentile))
    }

    /// Keeps the chosen columns of a table.
    fn choose(&self, titles: &mut Vec<String>, rows: &mut [Vec<String>]) {
        let positions = self.positions(titles);
        let chosen = |cells: &Vec<String>| positions.iter().map(|at| cells[*at].clone()).collect();
        rows.iter_mut().for_each(|row| *row = chosen(row));
        *titles = chosen(titles);
    }

    /// Returns the first name that no column has, with the titles of the columns.
    pub fn unknown_column<'s>(&'s self, titles: &[String]) -> Option<&'s str> {
        let is_unknown = |name: &&String| !titles.iter().any(|title| Shown::names(name, title));
        self.columns.iter().find(is_unknown).map(String::as_str)
    }

    /// Returns the percentiles of a table with their values in nanoseconds.
    fn tail(&self, summary: Option<&Summary>) -> Vec<(f64, Option<f64>)> {
        if self.percentiles.is_empty() {
            return vec![(USUAL, summary.and_then(|s| s.p99).map(|p| p.value))];
        }
        let chosen = summary.map(|s| s.chosen.as_slice()).unwrap_or_default();
        let value = |at: usize| chosen.get(at).and_then(|(_, p)| *p).map(|p| p.value);
        self.percentiles.numbers().iter().zip(0..).map(|(percent, at)| (*percent, value(at))).collect()
    }
}

/// Returns the name of a percentile: `p99`, and `p1` of a rate, which corresponds to the p99 of the time.
fn percentile_name(metric: Metric, percent: f64) -> String {
    match metric {
        Metric::Latency => format!("p{percent}"),
        Metric::Bandwidth => format!("p{}", ((100.0 - percent) * 1e9).round() / 1e9),
    }
}

/// Whether text output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Plain text.
    #[default]
    Plain,
    /// Bold headings, yellow marks, red failures.
    Coloured,
}

impl Paint {
    fn heading(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    fn warning(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        match self {
            Paint::Coloured if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}
