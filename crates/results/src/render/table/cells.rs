//! Cells of one row: figures, or reasons for missing figures.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    number::{Decimals, figure},
    render::{
        grid::{NO_VALUE, interval, size},
        plain,
    },
};
use ombx_core::{
    benchmark::{Figure, Metric, interval_names, payload::Check},
    result::{Level, MESSAGE_RATE_UNIT, Measurement, Run},
    stats::Summary,
};

/// Reasons for a missing p99, or p1 of a rate: too few samples of single iterations, or samples that do not bound it.
const NO_TAIL: [[&str; 2]; 2] = [
    [
        "a p99 needs 368 samples of single iterations",
        "a p1 of the rate needs 368 samples of single iterations",
    ],
    [
        "a p99 needs independent iterations, each 20 times as long as a clock reading",
        "a p1 of the rate needs independent iterations, each 20 times as long as a clock reading",
    ],
];
/// Minimum number of samples that bound a p99.
const LEAST_FOR_P99: usize = 368;
/// Coverage below which an interval names its own.
const NOMINAL: f64 = 0.945;
const NO_INTERVAL: &str = "a 95% interval needs 6 independent samples";
const ONE_OF_SEVERAL: &str = "an interval over launches needs 2 launches";
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

/// What the columns of a table are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The interval is about one launch; minimum and maximum are samples.
    #[default]
    OneLaunch,
    /// The interval is about all launches; minimum and maximum are medians of launches.
    Launches,
}

impl Scope {
    /// Returns what the rows of a run are about. The plan of several launches has their number.
    pub fn of(run: &Run) -> Scope {
        match run.plan.get("launches").and_then(|count| count.parse().ok()) {
            Some(2u32..) => Scope::Launches,
            _ => Scope::OneLaunch,
        }
    }
}

/// Returns the column titles, including additional figures.
pub fn column_titles(metric: Option<Metric>, scope: Scope, figures: &BTreeSet<&str>) -> Vec<String> {
    let fixed = fixed_titles(metric, scope);
    let (first, rest) = fixed.split_at(fixed.len() - LAST);
    let extra = figures.iter().map(|name| plain(&name.replace('_', " ")));
    first.iter().map(|&s| s.into()).chain(extra).chain(rest.iter().map(|&s| s.into())).collect()
}

/// Returns the fixed titles. The p1 of a rate corresponds to the p99 of a time.
fn fixed_titles(metric: Option<Metric>, scope: Scope) -> Vec<&'static str> {
    let (unit, tail) = match metric {
        Some(Metric::Bandwidth) => ("MB/s", "p1"),
        _ => ("us", "p99"),
    };
    let message_rate = (metric == Some(Metric::Bandwidth)).then_some(MESSAGE_RATE_UNIT);
    let (figures, samples) = match scope {
        Scope::OneLaunch => (["95% within this launch", tail, "min", "max"], "samples"),
        Scope::Launches => (["95% interval", tail, "min launch", "max launch"], "launches"),
    };
    ["bytes", unit].into_iter().chain(figures).chain(message_rate).chain([samples, "trust"]).collect()
}

/// Returns the cells of a failed row. Its figures are left out.
pub(crate) fn failed(row: &Measurement) -> FormattedRow {
    let why = if matches!(row.check, Check::Failed(_)) { "wrong data" } else { "" };
    let mut cells = vec![size(row.bytes), "FAILED".into()];
    cells.resize(fixed_titles(Some(row.metric), Scope::default()).len() - 1, String::new());
    cells.push(why.into());
    FormattedRow { cells, figures: BTreeMap::new() }
}

/// Returns the cells of a measured row with its marks of this level and above, and the reasons for missing figures.
pub fn format_row(row: &Measurement, scope: Scope, least: Level) -> (FormattedRow, Vec<String>) {
    let samples = match (&row.summary, scope, row.batch()) {
        (_, Scope::Launches, _) => row.launch_count().to_string(),
        (Some(s), _, None | Some(1)) => s.n.to_string(),
        (Some(s), _, Some(batch)) => format!("{} x {batch}", s.n),
        (None, ..) => row.samples.first().map_or(0, |s| s.elapsed_ns.len()).to_string(),
    };
    let unresolved = row.figures.values().any(|figure| matches!(figure, Figure::Unresolved(_)));
    let (figures, mut absent) = match (&row.summary, row.metric) {
        // A missing figure gives its own reason.
        (None, _) if unresolved => (none(), vec![]),
        (None, _) => (none(), vec![NO_SAMPLES]),
        (Some(s), _) if s.median <= 0.0 => (none(), vec![NO_TIME]),
        (Some(s), Metric::Latency) => (times(row, scope, s), missing(s, 0)),
        (Some(s), Metric::Bandwidth) => match rates(row, scope, s) {
            Some(figures) => (figures, missing(s, 1)),
            None => (none(), vec![NO_BYTES]),
        },
    };
    if scope == Scope::Launches && row.launch_count() == 1 && row.summary.is_some() {
        absent.push(ONE_OF_SEVERAL);
    }
    if row.marks(least).any(|mark| mark.code == "no_interval") {
        absent.retain(|why| *why != NO_INTERVAL);
    }
    let trust: Vec<&str> = row.marks(least).map(|mark| mark.short.as_str()).collect();
    let mut cells = vec![size(row.bytes)];
    cells.extend(figures);
    if row.metric == Metric::Bandwidth {
        cells.push(or_none(row.message_rate().map(|rate| figure(rate.value))));
    }
    cells.extend([samples, plain(&trust.join(", "))]);
    let mut absent: Vec<String> = absent.into_iter().map(str::to_owned).collect();
    let mut figures = BTreeMap::new();
    let end =
        |name: &String| if let Some(Figure::Value(x)) = row.figures.get(name) { Some(*x) } else { None };
    for (name, value) in &row.figures {
        let ends = interval_names(name).and_then(|[low, high]| Some([end(&low)?, end(&high)?]));
        let cell = match value {
            Figure::Value(x) => match ends {
                None => figure(*x),
                Some(_) => {
                    let decimals = Decimals::of(*x, ends);
                    let text = |x: f64| decimals.format(x);
                    format!("{} ({})", text(*x), interval(ends, text))
                }
            },
            Figure::Unresolved(why) => {
                absent.push(plain(why));
                NO_VALUE.into()
            }
        };
        figures.insert(name.clone(), cell);
    }
    // The cell of a figure contains the ends of its interval.
    for ends in row.figures.keys().filter_map(|name| interval_names(name)) {
        if ends.iter().all(|name| figures.contains_key(name)) {
            figures.retain(|name, _| !ends.contains(name));
        }
    }
    (FormattedRow { cells, figures }, absent)
}

fn none() -> [String; 5] {
    [NO_VALUE; 5].map(str::to_owned)
}

/// Returns the reasons for a missing interval and tail, which is a p99 (0) or a p1 of a rate (1).
fn missing(s: &Summary, kind: usize) -> Vec<&'static str> {
    let tail = NO_TAIL[usize::from(s.tail_n >= LEAST_FOR_P99)][kind];
    let interval = s.ci95.is_none().then_some(NO_INTERVAL);
    let tail = s.p99.is_none().then_some(tail);
    interval.into_iter().chain(tail).collect()
}

fn times(row: &Measurement, scope: Scope, s: &Summary) -> [String; 5] {
    let us = |ns: f64| ns / 1e3;
    cells(
        row,
        scope,
        us(s.median),
        s.ci95.map(|ends| ends.map(us)),
        s.p99.map(|p| us(p.value)),
        [us(s.min), us(s.max)],
    )
}

fn rates(row: &Measurement, scope: Scope, s: &Summary) -> Option<[String; 5]> {
    let rate = row.mb_per_s()?;
    let of = |leg_ns: f64| row.in_unit(leg_ns).unwrap_or(f64::NAN);
    Some(cells(row, scope, rate.median, rate.ci95, s.p99.map(|p| of(p.value)), [of(s.max), of(s.min)]))
}

/// Returns headline, interval, tail, minimum and maximum. The digits of headline and interval follow from the interval.
fn cells(
    row: &Measurement,
    scope: Scope,
    median: f64,
    ci95: Option<[f64; 2]>,
    tail: Option<f64>,
    samples: [f64; 2],
) -> [String; 5] {
    let decimals = Decimals::of(median, ci95);
    let text = |value: f64, text: String| if value.is_finite() { text } else { NO_VALUE.into() };
    let shown = |value: f64| text(value, decimals.format(value));
    // Single samples are less certain than the headline.
    let sample = |value: f64| text(value, decimals.format_at_most_figure(value));
    let over = row.over_launches();
    let (interval, ends) = match scope {
        Scope::OneLaunch => (interval(ci95, shown), samples.map(sample)),
        Scope::Launches => {
            let interval = interval(ci95.filter(|_| over.is_some()), shown);
            (interval, row.launch_range().unwrap_or([median; 2]).map(shown))
        }
    };
    // Fewer than 6 launches have no interval of 95 %.
    let interval = match over.filter(|over| over.coverage < NOMINAL) {
        Some(over) => format!("{interval} ({:.0}%)", over.coverage * 100.0),
        None => interval,
    };
    let [low, high] = ends;
    [shown(median), interval, or_none(tail.map(sample)), low, high]
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NO_VALUE.into())
}
