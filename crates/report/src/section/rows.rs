//! Tables of all rows with figures, reasons for missing figures, and marks: one table per benchmark and run.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ombx_core::{
    benchmark::{Metric, payload::Check},
    result::{Level, Measurement, Outcome, Run},
    team::Place,
    unit::Bytes,
};
use ombx_results::render::{FormattedRow, Scope, column_titles, format_other_states, format_row};

use crate::{
    runs::{NumberedRow, RunList, count, is_link},
    section::pipeline,
};

/// Maximum number of rows for which the tables are initially open.
const MAX_OPEN: usize = 120;
/// Axes that are the ranks at both ends of a link.
const ENDS: [&str; 2] = ["from", "to"];

pub(crate) fn section(runs: &RunList<'_>) -> Markup {
    let all = runs.rows().count();
    html! {
        section #rows aria-labelledby="rows-h" {
            h2 #rows-h { "All rows" }
            @if all == 0 { p { "The files have no rows." } }
            @for entry in &runs.entries {
                @for rows in benchmarks(entry.rows()) {
                    @let bench = &rows[0].row.bench;
                    details.rows open[all <= MAX_OPEN] {
                        summary {
                            b { (bench) } " · " (count(rows.len(), "row"))
                            @if runs.entries.len() > 1 { " · " (entry.name) }
                        }
                        (table(bench, &rows, &entry.run.run))
                    }
                }
            }
        }
    }
}

/// Groups rows by benchmark and metric, in the order of measurement.
fn benchmarks<'a>(rows: impl Iterator<Item = NumberedRow<'a>>) -> Vec<Vec<NumberedRow<'a>>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<NumberedRow<'a>>> = Vec::new();
    for numbered in rows {
        let place = *places.entry((&numbered.row.bench, numbered.row.metric.name())).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(numbered);
    }
    groups
}

/// Columns of a table in front of the figures.
struct Columns<'a> {
    /// Both ends of a link come first.
    axes: Vec<&'a str>,
    places: &'a [Place],
    depth: bool,
    pairs: bool,
}

impl<'a> Columns<'a> {
    fn new(rows: &[NumberedRow<'a>], run: &'a Run) -> Columns<'a> {
        let axes: BTreeSet<&str> = rows.iter().flat_map(|r| r.row.axes.keys().map(String::as_str)).collect();
        let (ends, others): (Vec<&str>, Vec<&str>) = axes.into_iter().partition(|axis| ENDS.contains(axis));
        Columns {
            axes: ends.into_iter().chain(others).collect(),
            places: &run.places,
            depth: rows.iter().any(|r| r.row.depth.is_some()),
            pairs: rows.iter().any(|r| r.row.pairs > 1),
        }
    }

    fn head(&self) -> Markup {
        html! {
            @for axis in &self.axes { th.word scope="col" { (axis) } }
            @if self.depth { th scope="col" { "window" } }
            @if self.pairs { th scope="col" { "pairs" } }
        }
    }

    /// Empty cells in front of the figures of another state of the machine.
    fn blank(&self) -> Markup {
        let count = self.axes.len() + usize::from(self.depth) + usize::from(self.pairs);
        html! { @for _ in 0..count { td {} } }
    }

    /// Returns the value of an axis. Ends of a link have the names of their hosts.
    fn value(&self, row: &Measurement, axis: &str) -> String {
        let value = row.axes.get(axis).map_or("", String::as_str);
        let rank = value.parse::<usize>().ok().filter(|_| is_link(row) && ENDS.contains(&axis));
        let host = rank.and_then(|rank| self.places.get(rank)).map(|place| &place.host);
        host.map_or_else(|| value.to_owned(), |host| format!("{host} {value}"))
    }

    fn cells(&self, row: &Measurement) -> Markup {
        html! {
            @for axis in &self.axes { td.word { (self.value(row, axis)) } }
            @if self.depth { td { @if let Some(depth) = row.depth { (depth) } } }
            @if self.pairs { td { (row.pairs) } }
        }
    }
}

fn table(bench: &str, rows: &[NumberedRow<'_>], run: &Run) -> Markup {
    let (columns, scope) = (Columns::new(rows, run), Scope::of(run));
    let metric = rows.first().map(|r| r.row.metric);
    let mut absent: BTreeSet<String> = BTreeSet::new();
    let texts: Vec<Option<FormattedRow>> = rows
        .iter()
        .map(|r| {
            (r.row.outcome == Outcome::Ok).then(|| {
                let (text, reasons) = format_row(r.row, scope, Level::Caution);
                absent.extend(reasons);
                text
            })
        })
        .collect();
    // Figures of single phases of a pipeline are too many for columns.
    let drawn = |name: &str| rows.first().is_some_and(|r| pipeline::is_drawn(r.row, name));
    let figures: BTreeSet<&str> =
        texts.iter().flatten().flat_map(FormattedRow::figures).filter(|name| !drawn(name)).collect();
    let titles = column_titles(metric, scope, &figures);
    html! {
        div.wide role="group" aria-label={ "Rows of " (bench) } {
            table {
                caption { (bench) ": " (metric.map_or("", Metric::name)) }
                thead { tr {
                    (columns.head())
                    @for (at, name) in titles.iter().enumerate() {
                        th.word[at + 1 == titles.len()] scope="col" { (if name == "us" { "µs" } else { name }) }
                    }
                    th.word scope="col" { "check" }
                } }
                tbody {
                    @for (r, text) in rows.iter().zip(&texts) {
                        tr id={ "r" (r.at) } {
                            (columns.cells(r.row))
                            @match (&r.row.outcome, text) {
                                (Outcome::Ok, Some(text)) => (figures_of(r.row, text, &figures)),
                                (outcome, _) => (instead(r.row, outcome, titles.len() - 1)),
                            }
                            (check(r.row))
                        }
                        @for state in format_other_states(r.row, scope) {
                            tr.state {
                                (columns.blank())
                                @let cells = state.cells(&figures);
                                @for cell in &cells[..cells.len() - 1] { td { (cell) } }
                                td.word { "another state" }
                                td {}
                            }
                        }
                    }
                }
            }
        }
        @if !absent.is_empty() {
            ul.notes { @for why in &absent { li { "n/a: " (why) } } }
        }
    }
}

/// Cells of a row with figures. Its notes are folded.
fn figures_of(row: &Measurement, text: &FormattedRow, figures: &BTreeSet<&str>) -> Markup {
    let cells = text.cells(figures);
    let last = cells.len() - 1;
    let notes: Vec<&str> =
        row.trust.iter().filter(|mark| mark.level == Level::Note).map(|mark| mark.short.as_str()).collect();
    html! {
        @for (at, cell) in cells.iter().enumerate() {
            @if at == 0 { th scope="row" { (cell) } }
            @else if at == last { td.word {
                span.is-doubt { (cell) }
                @if !notes.is_empty() {
                    details.notes { summary { (count(notes.len(), "note")) } (notes.join(", ")) }
                }
            } }
            @else { td { (cell) } }
        }
    }
}

/// Cells of a row without figures: size and reason.
fn instead(row: &Measurement, outcome: &Outcome, columns: usize) -> Markup {
    let (class, text) = match outcome {
        Outcome::Ok => ("is-good", String::new()),
        Outcome::Skipped(why) => ("is-doubt", format!("skipped: {why}")),
        Outcome::Failed(why) => ("is-bad", format!("FAILED: {why}")),
    };
    html! {
        th scope="row" { @if let Some(bytes) = row.bytes { (Bytes(bytes)) } @else { "-" } }
        td.long.(class) colspan=(columns) { (text) }
    }
}

fn check(row: &Measurement) -> Markup {
    match &row.check {
        Check::Failed(mismatch) => html! { td.long.is-bad { "failed: " (mismatch) } },
        Check::Passed => html! { td.word { "passed" } },
        other => html! { td.word { (other.name()) } },
    }
}
