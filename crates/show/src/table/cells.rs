//! Cells of one row: figures, or reasons for missing figures.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use comfy_table::{CellAlignment, Row, Table, presets};
use ombx_estimate::{
    number::{Decimals, figure},
    text::plain,
};
use ombx_record::{
    result::{
        BetweenRuns, Check, Figure, Level, MESSAGE_RATE_UNIT, MarkCode, Measurement, Metric, Rate, Run,
        StateFigure, interval_names,
    },
    runs::number,
    stats::{Summary, least_samples},
    unit::Bytes,
};

use crate::Shown;

/// Number of figures beside percentiles: headline, interval, minimum and maximum.
const ALWAYS: usize = 4;
const NO_INTERVAL: &str = "a 95% interval needs 6 independent samples";
const ONE_OF_SEVERAL: &str = "an interval over launches needs 2 launches";
const NO_SAMPLES: &str = "nothing was sampled";
const NO_BYTES: &str = "0 bytes have no bandwidth";
/// First words of the titles of the two bandwidths of collective operations.
pub(super) const ALGORITHM: &str = "algorithm";
pub(super) const BUS: &str = "bus";
const NO_TIME: &str = "the time is below the resolution of the clock";

/// Cells of a row. Additional figures have columns between the times and the number of samples.
#[derive(Debug)]
pub struct FormattedRow {
    cells: Vec<String>,
    pub(super) figures: BTreeMap<String, String>,
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

/// Title of the column of marks.
pub(crate) const TRUST: &str = "trust";
/// Number of cells after the additional figures: samples and marks.
const LAST: usize = 2;

/// What the columns of a table are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The interval is about one launch; minimum and maximum are samples.
    #[default]
    OneLaunch,
    /// The interval is about the launches of one run; minimum and maximum are medians of launches.
    Launches,
    /// The same for the launches of several runs.
    Runs,
}

impl Scope {
    /// Returns what the rows of a run are about. The plan of several launches has their number.
    pub fn new(run: &Run) -> Scope {
        match number(run, "launches") {
            Some(2u32..) if run.plan.contains_key("runs") => Scope::Runs,
            Some(2u32..) => Scope::Launches,
            _ => Scope::OneLaunch,
        }
    }
}

/// Returns the column titles, including additional figures.
pub fn titles(shown: &Shown, metric: Option<Metric>, scope: Scope, figures: &BTreeSet<&str>) -> Vec<String> {
    let mut fixed = fixed_titles(shown, metric, scope);
    let last = fixed.split_off(fixed.len() - LAST);
    let extra = figures.iter().map(|name| plain(&name.replace('_', " ")));
    fixed.into_iter().chain(extra).chain(last).collect()
}

/// Returns the titles that every table of a metric has.
fn fixed_titles(shown: &Shown, metric: Option<Metric>, scope: Scope) -> Vec<String> {
    let metric = metric.unwrap_or(Metric::Latency);
    // Percentiles are of single iterations; samples and launches are batches of them.
    let title = |percent| format!("{} iteration", crate::percentile_name(metric, percent));
    let tail = shown.tail(None).into_iter().map(|(percent, _)| title(percent));
    let message_rate = (metric == Metric::Bandwidth).then_some(MESSAGE_RATE_UNIT);
    let (interval, ends, samples) = match scope {
        Scope::OneLaunch => ("95% within this launch", ["min sample", "max sample"], "samples"),
        Scope::Launches => ("95% within this run", ["min launch", "max launch"], "launches"),
        Scope::Runs => ("95% within these runs", ["min launch", "max launch"], "launches"),
    };
    let first = ["bytes", shown.units.name(metric), interval].map(str::to_owned);
    let rest = ends.into_iter().chain(message_rate).chain([samples, TRUST]).map(str::to_owned);
    first.into_iter().chain(tail).chain(rest).collect()
}

/// Returns the cells of a failed row. Its figures are left out.
pub(crate) fn failed(shown: &Shown, row: &Measurement) -> FormattedRow {
    let why = if matches!(row.check, Check::Failed(_)) { "wrong data" } else { "" };
    let mut cells = vec![size(row.bytes), "FAILED".into()];
    cells.resize(fixed_titles(shown, Some(row.metric), Scope::default()).len() - 1, String::new());
    cells.push(why.into());
    FormattedRow { cells, figures: BTreeMap::new() }
}

/// Returns the cells of a measured row with its marks of this level and above, and the reasons for missing figures.
pub fn format_row(
    shown: &Shown,
    row: &Measurement,
    scope: Scope,
    least: Level,
) -> (FormattedRow, Vec<String>) {
    let samples = match (&row.summary, scope, row.batch()) {
        (_, Scope::Launches | Scope::Runs, _) => match (row.launches_in_state(), row.launch_count()) {
            (all, count) if all == count => count.to_string(),
            (some, count) => format!("{some} of {count}"),
        },
        (Some(s), _, None | Some(1)) => s.n.to_string(),
        (Some(s), _, Some(batch)) => format!("{} x {batch}", s.n),
        (None, ..) => row.samples.first().map_or(0, |s| s.elapsed_ns.len()).to_string(),
    };
    let unresolved = row.figures.values().any(|figure| matches!(figure, Figure::Unresolved(_)));
    let none = || vec![NO_VALUE.to_owned(); ALWAYS + shown.tail(None).len()];
    let (figures, mut absent) = match (&row.summary, row.metric) {
        // A missing figure gives its own reason.
        (None, _) if unresolved => (none(), vec![]),
        (None, _) => (none(), vec![NO_SAMPLES.to_owned()]),
        (Some(s), _) if s.median <= 0.0 => (none(), vec![NO_TIME.to_owned()]),
        (Some(s), Metric::Latency) => (times(shown, row, scope, s), missing(shown, row, s)),
        (Some(s), Metric::Bandwidth) => match rates(shown, row, scope, s) {
            Some(figures) => (figures, missing(shown, row, s)),
            None => (none(), vec![NO_BYTES.to_owned()]),
        },
    };
    if scope != Scope::OneLaunch && row.launch_count() == 1 && row.summary.is_some() {
        absent.push(ONE_OF_SEVERAL.to_owned());
    }
    if row.marks(least).any(|mark| mark.code == MarkCode::NoInterval) {
        absent.retain(|why| why != NO_INTERVAL);
    }
    let trust: Vec<&str> = row.marks(least).map(|mark| mark.short.as_str()).collect();
    let mut cells = vec![size(row.bytes)];
    cells.extend(figures);
    if row.metric == Metric::Bandwidth {
        cells.push(or_none(row.message_rate().map(|rate| figure(rate.value))));
    }
    cells.extend([samples, plain(&trust.join(", "))]);
    let mut figures: BTreeMap<String, String> = bus(shown, row).into_iter().flatten().collect();
    if let Some([first, _, ..]) = row.over_launches().map(|over| over.states.as_slice()) {
        figures.extend(cores(first));
    }
    figures.extend(
        row.over_launches().and_then(|over| over.between).iter().flat_map(|b| between(shown, row, b)),
    );
    for (name, value) in &row.figures {
        let ends = interval_names(name).and_then(|[low, high]| Some([row.figure(&low)?, row.figure(&high)?]));
        let cell = match value {
            Figure::Value(x) => match ends {
                None if is_count(name) && x.fract() == 0.0 => format!("{x:.0}"),
                None => figure(*x),
                Some(_) => {
                    let decimals = Decimals::new(*x, ends);
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

/// Title of the column with the distance of cores, of rows whose launches met several states.
const CORES: &str = "cores ns";
/// Titles of the columns about earlier runs.
const NEXT_RUN: &str = "95% of next run";
const LEVEL: &str = "95% of level";
const RUNS: &str = "earlier runs";

/// Returns the cells of the figures of a row in less frequent states of the machine: one line each, without size, percentiles and marks.
pub fn other_states(shown: &Shown, row: &Measurement, scope: Scope) -> Vec<FormattedRow> {
    let Some(over) = row.over_launches() else { return Vec::new() };
    let cells = |state: &StateFigure| {
        let of = |ns: f64| row.in_unit(ns).map(|value| shown.units.convert(row.metric, value));
        let sorted = |ends: [f64; 2]| {
            let [a, b] = ends.map(|ns| of(ns).unwrap_or(f64::NAN));
            [a.min(b), a.max(b)]
        };
        let ends = state.ends_ns.map(sorted);
        let value = of(state.median_ns).unwrap_or(f64::NAN);
        let decimals = Decimals::new(value, ends);
        let exact = |value: f64| decimals.format(value);
        let medians = state.launches.iter().map(|at| over.medians_ns[*at]);
        let range = medians.fold([f64::INFINITY, 0.0], |[low, high], ns| [ns.min(low), ns.max(high)]);
        let interval = interval(ends, exact);
        let coverage = format!(" ({:.0}%)", state.coverage * 100.0);
        let interval = if ends.is_some() { interval + &coverage } else { interval };
        let mut cells = vec![String::new(), exact(value), interval];
        cells.extend(shown.tail(None).iter().map(|_| String::new()));
        cells.extend(sorted(range).map(exact));
        cells.resize(fixed_titles(shown, Some(row.metric), scope).len() - LAST, String::new());
        cells.extend([format!("{} of {}", state.launches.len(), over.medians_ns.len()), String::new()]);
        FormattedRow { cells, figures: cores(state).into_iter().collect() }
    };
    over.states.iter().skip(1).map(cells).collect()
}

/// Returns the cells about earlier runs: their interval for the next run, that of the level of the machine, and their number with the
/// number whose headline lies in the interval of the others.
fn between(shown: &Shown, row: &Measurement, between: &BetweenRuns) -> Vec<(String, String)> {
    let BetweenRuns { runs, next_ns, level_ns, inside: [inside, tried] } = *between;
    let count = if tried > 0 { format!("{runs} ({inside} of {tried} inside)") } else { runs.to_string() };
    let interval = |ends| sorted_interval(shown, row, ends).unwrap_or_else(|| NO_VALUE.to_owned());
    [(NEXT_RUN, interval(next_ns)), (LEVEL, interval(level_ns)), (RUNS, count)]
        .map(|(title, cell)| (title.to_owned(), cell))
        .into()
}

/// Formats an interval in nanoseconds in the unit of the headline, the lower end first; `None` without one.
fn sorted_interval(shown: &Shown, row: &Measurement, ends_ns: Option<[f64; 2]>) -> Option<String> {
    let value = |ns: f64| Some(shown.units.convert(row.metric, row.in_unit(ns)?));
    let [a, b] = ends_ns?.map(value);
    let (low, high) = (a?.min(b?), a?.max(b?));
    let middle = (low * high).sqrt();
    let decimals = Decimals::new(middle, Some([low, high]));
    Some(format!("{} .. {}", decimals.format(low), decimals.format(high)))
}

/// Returns the cell of the distance of cores in a state.
fn cores(state: &StateFigure) -> Option<(String, String)> {
    Some((CORES.to_owned(), format!("{:.0}", state.core_to_core_ns?)))
}

/// Returns whether a figure counts something.
fn is_count(figure: &str) -> bool {
    ["retransmits", "messages", "starts", "bytes"].iter().any(|unit| figure.ends_with(unit))
}

/// Returns the algorithm and bus bandwidth of a collective operation with the titles of their columns.
fn bus(shown: &Shown, row: &Measurement) -> Option<[(String, String); 2]> {
    let unit = shown.units.of_rates();
    let of = |name: &str, rate: Option<Rate>| {
        let value = rate.map(|rate| unit.of_mb(rate.median)).filter(|value| value.is_finite());
        (format!("{name} {}", unit.name()), or_none(value.map(figure)))
    };
    row.bus?;
    Some([of(ALGORITHM, row.algorithm_mb_per_s()), of(BUS, row.bus_mb_per_s())])
}

/// Returns the reasons for a missing interval and for missing percentiles: too few samples of single iterations in a launch, or samples
/// that do not bound them.
fn missing(shown: &Shown, row: &Measurement, s: &Summary) -> Vec<String> {
    let mut reasons: Vec<String> = s.ci95.is_none().then(|| NO_INTERVAL.to_owned()).into_iter().collect();
    // Nobody misses a percentile that nobody asked for.
    let asked = if shown.percentiles.is_empty() { Vec::new() } else { shown.tail(Some(s)) };
    for (percent, _) in asked.into_iter().filter(|(_, value)| value.is_none()) {
        let name = crate::percentile_name(row.metric, percent);
        let what = if row.metric == Metric::Bandwidth { format!("{name} of the rate") } else { name };
        let least = least_samples(percent / 100.0);
        reasons.push(if (s.tail_n / row.launch_count().max(1)) as u64 >= least {
            format!("a {what} needs independent iterations, each 20 times as long as a clock reading")
        } else {
            format!("a {what} needs {least} samples of single iterations")
        });
    }
    reasons
}

fn times(shown: &Shown, row: &Measurement, scope: Scope, s: &Summary) -> Vec<String> {
    let of = |ns: f64| shown.units.of_times().of_ns(ns);
    cells(shown, row, scope, of(s.median), s.ci95.map(|ends| ends.map(of)), of, [s.min, s.max])
}

fn rates(shown: &Shown, row: &Measurement, scope: Scope, s: &Summary) -> Option<Vec<String>> {
    let rate = row.mb_per_s()?;
    let unit = shown.units.of_rates();
    let of = |leg_ns: f64| row.in_unit(leg_ns).map_or(f64::NAN, |mb_per_s| unit.of_mb(mb_per_s));
    let ci95 = rate.ci95.map(|ends| ends.map(|mb_per_s| unit.of_mb(mb_per_s)));
    Some(cells(shown, row, scope, unit.of_mb(rate.median), ci95, of, [s.max, s.min]))
}

/// Returns headline, interval, tail, minimum and maximum. The digits of headline and interval follow from the interval. `of` converts
/// nanoseconds; `ends` are the samples, in nanoseconds, that give the minimum and the maximum.
fn cells(
    shown: &Shown,
    row: &Measurement,
    scope: Scope,
    median: f64,
    ci95: Option<[f64; 2]>,
    of: impl Fn(f64) -> f64,
    ends: [f64; 2],
) -> Vec<String> {
    let decimals = Decimals::new(median, ci95);
    let text = |value: f64, text: String| if value.is_finite() { text } else { NO_VALUE.into() };
    let exact = |value: f64| text(value, decimals.format(value));
    // Single samples are less certain than the headline.
    let sample = |value: f64| text(value, decimals.format_at_most_figure(value));
    let over = row.over_launches();
    let (interval, ends) = match scope {
        Scope::OneLaunch => (interval(ci95, exact), ends.map(|ns| sample(of(ns)))),
        Scope::Launches | Scope::Runs => {
            let interval = interval(ci95.filter(|_| over.is_some()), exact);
            let range =
                row.launch_range().map(|ends| ends.map(|value| shown.units.convert(row.metric, value)));
            (interval, range.unwrap_or([median; 2]).map(exact))
        }
    };
    // A range names its coverage.
    let interval = match over.filter(|over| over.is_range() && ci95.is_some()) {
        Some(over) => format!("{interval} ({:.0}%)", over.coverage() * 100.0),
        None => interval,
    };
    let tail = shown.tail(row.summary.as_ref()).into_iter();
    let tail = tail.map(|(_, ns)| or_none(ns.map(|ns| sample(of(ns)))));
    [exact(median), interval].into_iter().chain(tail).chain(ends).collect()
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NO_VALUE.into())
}

/// Titles of columns that are left out before all others.
const FIRST: [&str; 8] = [
    "cwnd bytes",
    "least rtt us",
    "rtt us",
    "datagrams per receive",
    "datagrams per send",
    "sent per s",
    "duplicate percent",
    "reordered percent",
];
/// Titles of columns that are left out next. The algorithm bandwidth, percentiles and the bus bandwidth follow them.
const SPARE: [&str; 5] = ["min launch", "max launch", "min sample", "max sample", "range"];
/// Titles of columns that are left out last.
const COUNTS: [&str; 9] = [
    "retransmits",
    MESSAGE_RATE_UNIT,
    "launches",
    "samples",
    "finds",
    "mean",
    "90% interval",
    "first",
    "last",
];
/// Width of the last column below which other columns are left out, if its text is wider.
const NARROWEST: usize = 16;
/// Blanks around the text of a column.
const PADDING: usize = 2;

/// A table that fits.
pub(crate) struct Fitted {
    pub(crate) titles: Vec<String>,
    /// Cells of each row. The lines of the last cell are separated by line feeds.
    pub(crate) rows: Vec<Vec<String>>,
    /// Titles of the columns that did not fit.
    pub(crate) left_out: Vec<String>,
}

/// Fits a table to this many columns of a terminal; `None` means that there is no limit.
pub(crate) fn fitted(titles: Vec<String>, rows: Vec<Vec<String>>, columns: Option<usize>) -> Fitted {
    let all = titles.len();
    fitted_keeping(all, titles, rows, columns)
}

/// Fits a table as [`fitted`] does, and leaves out any further column but the last one and this many first ones.
pub(crate) fn fitted_keeping(
    first: usize,
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    columns: Option<usize>,
) -> Fitted {
    let mut table = Fitted { titles, rows, left_out: Vec::new() };
    let Some(columns) = columns else { return table };
    while table.least_width() > columns
        && let Some(spare) = table.spare().or_else(|| (first..table.titles.len() - 1).next_back())
    {
        let title = table.leave_out(spare);
        // The smallest value says little without the largest.
        if SPARE.contains(&title.as_str())
            && let Some(largest) = table.spare()
        {
            let _ = table.leave_out(largest);
        }
    }
    let last = table.titles.len() - 1;
    let left = columns.saturating_sub(table.before_last()).max(table.longest_word());
    table.rows.iter_mut().for_each(|row| row[last] = wrapped(&row[last], left).join("\n"));
    table
}

impl Fitted {
    /// Returns the position of the next column to leave out.
    fn spare(&self) -> Option<usize> {
        let is_none = |column: &usize| {
            !self.rows.is_empty()
                && self.rows.iter().all(|row| ["", NO_VALUE].contains(&row[*column].as_str()))
        };
        if let Some(empty) = (1..self.titles.len() - 1).rev().find(is_none) {
            return Some(empty);
        }
        let titled = |name: &str| self.titles.iter().position(|title| title == name);
        let percentile = |title: &String| {
            title.strip_prefix('p').is_some_and(|p| p.starts_with(|c: char| c.is_ascii_digit()))
        };
        let of = |names: &[&str]| names.iter().find_map(|name| titled(name));
        let begins = |word: &str| self.titles.iter().position(|title| title.starts_with(word));
        of(&FIRST)
            .or_else(|| of(&SPARE))
            .or_else(|| begins(ALGORITHM))
            .or_else(|| self.titles.iter().rposition(percentile))
            .or_else(|| begins(BUS))
            .or_else(|| of(&COUNTS))
    }

    fn leave_out(&mut self, column: usize) -> String {
        let has_value = |row: &Vec<String>| !["", NO_VALUE].contains(&row[column].as_str());
        let is_missed = self.rows.iter().any(has_value);
        self.rows.iter_mut().for_each(|row| _ = row.remove(column));
        let title = self.titles.remove(column);
        // Nobody misses a column without a value.
        self.left_out.extend(is_missed.then(|| title.clone()));
        title
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| &row[column]);
        cells.chain([&self.titles[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Returns the width of a line before the text of its last column.
    fn before_last(&self) -> usize {
        (0..self.titles.len() - 1).map(|column| self.width(column) + PADDING).sum::<usize>() + 1
    }

    fn longest_word(&self) -> usize {
        let last = self.titles.len() - 1;
        let words = self.rows.iter().flat_map(|row| row[last].split(' '));
        words.map(|word| word.chars().count()).max().unwrap_or(0)
    }

    fn least_width(&self) -> usize {
        let last = self.titles.len() - 1;
        let has_text = self.rows.iter().any(|row| !row[last].is_empty());
        let text = if has_text { self.width(last).min(NARROWEST.max(self.longest_word())) } else { 0 };
        self.before_last() + text.max(self.titles[last].chars().count())
    }
}

/// Text of a missing value.
pub(crate) const NO_VALUE: &str = "n/a";

/// Returns an empty table with these titles. The columns in `right` are aligned to the right.
pub(crate) fn grid(titles: impl Into<Row>, right: Range<usize>) -> Table {
    let mut grid = Table::new();
    grid.load_style(presets::NOTHING).set_header(titles);
    let columns = grid.column_iter_mut().skip(right.start).take(right.len());
    columns.for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    grid
}

/// Returns a table of which spare columns are left out until it fits. The columns in `right` are aligned to the right.
pub(crate) fn aligned(
    right: Range<usize>,
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    columns: Option<usize>,
) -> String {
    let Fitted { titles, rows, .. } = fitted(titles, rows, columns);
    let mut grid = grid(titles, right);
    grid.add_rows(rows);
    grid.trim_fmt()
}

/// Formats a message size.
pub(crate) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string())
}

/// Formats an interval: `low .. high`.
pub(crate) fn interval(bounds: Option<[f64; 2]>, format: impl Fn(f64) -> String) -> String {
    bounds.map_or(NO_VALUE.into(), |[low, high]| format!("{} .. {}", format(low), format(high)))
}

/// Breaks a text between words into lines of at most this many characters. A longer word has a line of its own.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    wrapped_at(" ", text, columns)
}

/// Breaks a text at a separator into lines of at most this many characters. A longer part has a line of its own.
pub fn wrapped_at(separator: &str, text: &str, columns: usize) -> Vec<String> {
    let width = |text: &str| text.chars().count();
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(separator).filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + width(separator) + width(word) <= columns => {
                *line += separator;
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Breaks a text into lines that fit, of which those after the first are indented; `None` means that there is no limit.
pub(crate) fn broken(text: &str, columns: Option<usize>, indent: &str) -> String {
    match columns {
        Some(columns) => wrapped(text, columns.saturating_sub(indent.len())).join(&format!("\n{indent}")),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod fit_tests {
    use crate::table::cells::*;

    fn table() -> (Vec<String>, Vec<Vec<String>>) {
        let of = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let titles =
            of(&["bytes", "us", "95% interval", "p99", "min launch", "max launch", "launches", "trust"]);
        let rows = vec![
            of(&["8", "0.141", "0.119 .. 0.154", "0.190", "0.098", "0.173", "9", ""]),
            of(&["64K", "7.0", "5.9 .. 8.4", "38.7", "6.1", "8.4", "9", "waited 5% (up to 8%), bimodal"]),
        ];
        (titles, rows)
    }

    #[test]
    fn columns_are_left_out_in_their_order_until_the_table_fits() {
        let left_out = |columns| {
            let (titles, rows) = table();
            fitted(titles, rows, columns).left_out
        };
        assert!(left_out(None).is_empty() && left_out(Some(120)).is_empty());
        assert_eq!(left_out(Some(80)), ["min launch", "max launch"]);
        assert_eq!(left_out(Some(60)), ["min launch", "max launch", "p99"]);
    }

    #[test]
    fn columns_without_a_value_go_first_and_without_a_word() {
        let (titles, mut rows) = table();
        rows.iter_mut().for_each(|row| row[3] = NO_VALUE.into());
        let fitted = fitted(titles, rows, Some(60));
        assert_eq!(fitted.left_out, ["min launch", "max launch"]);
    }

    #[test]
    fn marks_are_broken_between_words() {
        let (titles, rows) = table();
        let fitted = fitted(titles, rows, Some(60));
        let marks = fitted.rows[1].last().unwrap();
        assert_eq!(marks, "waited 5% (up to\n8%), bimodal");
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrapped("overlong a", 4), ["overlong", "a"]);
        assert!(wrapped("", 4).is_empty());
    }
}
