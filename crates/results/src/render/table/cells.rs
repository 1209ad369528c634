//! Cells of one row: figures, or reasons for missing figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    number::figure,
    render::{
        grid::{NO_VALUE, interval, size},
        plain,
    },
};
use ombx_core::{
    benchmark::{Figure, Metric, payload::Check},
    result::{MESSAGE_RATE_UNIT, Measurement},
    stats::Summary,
};

const NO_TAIL: [&str; 2] = ["a p99 needs 368 samples", "a p1 of the rate needs 368 samples"];
const NO_INTERVAL: &str = "a 95% interval needs 6 independent samples";
const NO_SAMPLES: &str = "nothing was sampled";
const NO_BYTES: &str = "0 bytes have no bandwidth";
const NO_TIME: &str = "the time is below the resolution of the clock";

/// Cells of a row. Additional figures have columns between the times and the number of samples.
#[derive(Debug)]
pub struct FormattedRow {
    cells: Vec<String>,
    figures: BTreeMap<String, String>,
}

impl FormattedRow {
    /// Returns all cells, including one for each of these additional figures.
    pub fn cells(&self, figures: &BTreeSet<&str>) -> Vec<String> {
        let extra = figures.iter().map(|name| self.figures.get(*name).cloned().unwrap_or_default());
        let (figures, rest) = self.cells.split_at(self.cells.len() - LAST);
        figures.iter().cloned().chain(extra).chain(rest.iter().cloned()).collect()
    }

    /// Returns the names of the additional figures.
    pub fn figures(&self) -> impl Iterator<Item = &str> {
        self.figures.keys().map(String::as_str)
    }
}

/// Number of cells after the additional figures: samples and marks.
const LAST: usize = 2;

/// Returns the column titles, including additional figures.
pub fn column_titles(metric: Option<Metric>, figures: &BTreeSet<&str>) -> Vec<String> {
    let fixed = fixed_titles(metric);
    let (first, rest) = fixed.split_at(fixed.len() - LAST);
    let extra = figures.iter().map(|name| plain(&name.replace('_', " ")));
    first.iter().map(|&s| s.into()).chain(extra).chain(rest.iter().map(|&s| s.into())).collect()
}

/// Returns the fixed titles. The p1 of a rate corresponds to the p99 of a time.
fn fixed_titles(metric: Option<Metric>) -> &'static [&'static str] {
    match metric {
        Some(Metric::Bandwidth) => {
            &["bytes", "MB/s", "95% interval", "p1", "min", "max", MESSAGE_RATE_UNIT, "samples", "trust"]
        }
        _ => &["bytes", "us", "95% interval", "p99", "min", "max", "samples", "trust"],
    }
}

/// Returns the cells of a failed row. Its figures are left out.
pub(super) fn failed(row: &Measurement) -> FormattedRow {
    let why = if matches!(row.check, Check::Failed(_)) { "wrong data" } else { "" };
    let mut cells = vec![size(row.bytes), "FAILED".into()];
    cells.resize(fixed_titles(Some(row.metric)).len() - 1, String::new());
    cells.push(why.into());
    FormattedRow { cells, figures: BTreeMap::new() }
}

/// Returns the cells of a measured row, and the reasons for missing figures.
pub fn format_row(row: &Measurement) -> (FormattedRow, Vec<String>) {
    let batch = row.samples.first().map_or(1, |s| s.batch);
    let samples = match &row.summary {
        Some(s) if batch == 1 => s.n.to_string(),
        Some(s) => format!("{} x {batch}", s.n),
        None => row.samples.first().map_or(0, |s| s.elapsed_ns.len()).to_string(),
    };
    let (figures, mut absent) = match (&row.summary, row.metric) {
        // A missing figure gives its own reason.
        (None, _) if !row.samples.is_empty() => (none(), vec![]),
        (None, _) => (none(), vec![NO_SAMPLES]),
        (Some(s), _) if s.median <= 0.0 => (none(), vec![NO_TIME]),
        (Some(s), Metric::Latency) => (times(s), missing(s, NO_TAIL[0])),
        (Some(s), Metric::Bandwidth) => match rates(row, s) {
            Some(figures) => (figures, missing(s, NO_TAIL[1])),
            None => (none(), vec![NO_BYTES]),
        },
    };
    if row.trust.iter().any(|notice| notice.code == "no_interval") {
        absent.retain(|why| *why != NO_INTERVAL);
    }
    let trust: Vec<&str> = row.trust.iter().map(|n| n.short.as_str()).collect();
    let mut cells = vec![size(row.bytes)];
    cells.extend(figures);
    if row.metric == Metric::Bandwidth {
        cells.push(or_none(row.message_rate().map(|rate| figure(rate.value))));
    }
    cells.extend([samples, plain(&trust.join(", "))]);
    let mut absent: Vec<String> = absent.into_iter().map(str::to_owned).collect();
    let mut figures = BTreeMap::new();
    for (name, value) in &row.figures {
        let cell = match value {
            Figure::Value(x) => figure(*x),
            Figure::Unresolved(why) => {
                absent.push(plain(why));
                NO_VALUE.into()
            }
        };
        figures.insert(name.clone(), cell);
    }
    (FormattedRow { cells, figures }, absent)
}

fn none() -> [String; 5] {
    [NO_VALUE; 5].map(str::to_owned)
}

fn missing(s: &Summary, tail: &'static str) -> Vec<&'static str> {
    let interval = s.ci95.is_none().then_some(NO_INTERVAL);
    let tail = s.p99.is_none().then_some(tail);
    interval.into_iter().chain(tail).collect()
}

fn times(s: &Summary) -> [String; 5] {
    let us = |ns: f64| figure(ns / 1e3);
    [us(s.median), interval(s.ci95, us), or_none(s.p99.map(us)), us(s.min), us(s.max)]
}

fn rates(row: &Measurement, s: &Summary) -> Option<[String; 5]> {
    let (rate, work) = row.mb_per_s().zip(row.work)?;
    let of = |leg_ns: f64| {
        let mb = work.bytes as f64 / (leg_ns * work.legs as f64) * 1e3;
        if mb.is_finite() { figure(mb) } else { NO_VALUE.into() }
    };
    Some([figure(rate.median), interval(rate.ci95, figure), or_none(s.p99.map(of)), of(s.max), of(s.min)])
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NO_VALUE.into())
}
