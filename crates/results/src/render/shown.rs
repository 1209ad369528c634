//! What the user chose to see of rows: units and percentiles.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use ombx_core::{
    benchmark::Metric,
    result::{ClockFacts, Measurement},
    stats::Summary,
};

use crate::{number::Units, percentiles::Percentiles};

/// Percentile that tables show by default.
const USUAL: f64 = 99.0;

/// Units and percentiles of tables and CSV.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// Units of times and rates.
    pub units: Units,
    /// Percentiles instead of the usual ones.
    pub percentiles: Percentiles,
}

impl Shown {
    /// Returns a row with the chosen percentiles, which come from its raw samples unless it has them already.
    pub(super) fn complete<'r>(
        &self,
        row: &'r Measurement,
        clock: Option<&ClockFacts>,
    ) -> Cow<'r, Measurement> {
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

    /// Returns the percentiles of a table with their values in nanoseconds.
    pub(super) fn tail(&self, summary: Option<&Summary>) -> Vec<(f64, Option<f64>)> {
        if self.percentiles.is_empty() {
            return vec![(USUAL, summary.and_then(|s| s.p99).map(|p| p.value))];
        }
        let chosen = summary.map(|s| s.chosen.as_slice()).unwrap_or_default();
        let value = |at: usize| chosen.get(at).and_then(|(_, p)| *p).map(|p| p.value);
        self.percentiles.numbers().iter().zip(0..).map(|(percent, at)| (*percent, value(at))).collect()
    }
}

/// Returns the name of a percentile: `p99`, and `p1` of a rate, which corresponds to the p99 of the time.
pub(super) fn name(metric: Metric, percent: f64) -> String {
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
    pub(super) fn heading(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        match self {
            Paint::Coloured if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}
