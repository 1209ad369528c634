//! Tables of all rows with figures, reasons for missing figures, and marks: one table per benchmark and run.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use ombx_compare::Comparison;
use ombx_estimate::{number::Units, publishable::Publishable};
use ombx_links::verdict::LinkSweep;
use ombx_record::{
    order::{grouped, sort_by_number},
    result::{Check, Level, MarkCode, Measurement, Metric, Outcome, Place, Run},
    unit::{Bytes, counted},
};
use ombx_show::{FormattedRow, ONE_LAUNCH, Scope, Shown, format_row, other_states, titles};

use crate::{
    run_list::{NumberedRow, RunEntry, RunList, is_link, is_ok},
    section::{
        finding::{Finding, MAX_ROWS, by_sentence, list, with_run},
        pipeline,
    },
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
                            b { (bench) } " · " (counted(rows.len(), "row"))
                            @if runs.entries.len() > 1 { " · " (entry.name) }
                        }
                        (table(bench, &rows, &entry.run.run, runs.units))
                    }
                }
            }
        }
    }
}

/// Groups rows by benchmark and metric, in the order of measurement.
fn benchmarks<'a>(rows: impl Iterator<Item = NumberedRow<'a>>) -> Vec<Vec<NumberedRow<'a>>> {
    let keyed = rows.map(|numbered| ((&numbered.row.bench, numbered.row.metric.name()), numbered));
    grouped(keyed).into_iter().map(|(_, rows)| rows).collect()
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

fn table(bench: &str, rows: &[NumberedRow<'_>], run: &Run, units: Units) -> Markup {
    let shown = Shown { units, ..Shown::default() };
    let (columns, scope) = (Columns::new(rows, run), Scope::new(run));
    let metric = rows.first().map(|r| r.row.metric);
    let mut absent: BTreeSet<String> = BTreeSet::new();
    let texts: Vec<Option<FormattedRow>> = rows
        .iter()
        .map(|r| {
            (r.row.outcome == Outcome::Ok).then(|| {
                let (text, reasons) = format_row(&shown, r.row, scope, Level::Caution);
                absent.extend(reasons);
                text
            })
        })
        .collect();
    // Figures of single phases of a pipeline are too many for columns.
    let drawn = |name: &str| rows.first().is_some_and(|r| pipeline::is_drawn(r.row, name));
    let figures: BTreeSet<&str> =
        texts.iter().flatten().flat_map(FormattedRow::figures).filter(|name| !drawn(name)).collect();
    let titles = titles(&shown, metric, scope, &figures);
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
                        @for state in other_states(&shown, r.row, scope) {
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
            @else if at == last { td.long {
                span.is-doubt { (cell) }
                @if !notes.is_empty() {
                    details.notes { summary { (counted(notes.len(), "note")) } (notes.join(", ")) }
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

/// Returns the line and what it unfolds.
pub(crate) fn fold(runs: &RunList<'_>, comparison: Option<&Comparison>) -> Markup {
    let mut doubts = skipped(runs);
    doubts.extend([Level::Invalid, Level::Caution].into_iter().flat_map(|level| marks(runs, level)));
    let remarks = comparison.map_or(&[][..], |comparison| &comparison.notes);
    let line = line(runs, remarks.len());
    let (notes, single) = (marks(runs, Level::Note), one_launch(runs));
    if doubts.is_empty() && notes.is_empty() && single.is_empty() && remarks.is_empty() {
        return html! { p.doubts { (line) } };
    }
    html! {
        details.doubts {
            summary { (line) }
            @for remark in remarks { p { (remark.text) } }
            @for sentence in single { p { (sentence) } }
            @if !doubts.is_empty() { (list(runs, &doubts)) }
            @if !notes.is_empty() {
                details { summary { (counted(notes.len(), "note")) } (list(runs, &notes)) }
            }
        }
    }
}

/// Returns the doubts in one line. `remarks` is the number of those on a comparison.
fn line(runs: &RunList<'_>, remarks: usize) -> String {
    let mut publishable = Publishable::default();
    runs.rows().filter(|r| !is_link(r.row)).for_each(|r| publishable.add(r.row));
    let mut parts = Vec::new();
    parts.extend((!publishable.is_empty()).then(|| publishable.to_string()));
    let links = || runs.rows().filter(|r| is_link(r.row) && is_ok(r.row));
    let all = links().count() + runs.links_in_rounds().map(LinkSweep::row_count).sum::<usize>();
    let marked = links().filter(|r| r.row.doubts().next().is_some()).count()
        + runs.links_in_rounds().map(LinkSweep::doubtful).sum::<usize>();
    if marked > 0 {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let codes = links().flat_map(|r| r.row.doubts()).map(|mark| mark.code.phrase());
        codes.for_each(|what| *counts.entry(what).or_default() += 1);
        for (_, code, _, rows) in in_rounds(runs).filter(|(level, ..)| *level >= Level::Caution) {
            *counts.entry(code.phrase()).or_default() += rows;
        }
        let counts: Vec<String> = counts.iter().map(|(what, n)| format!("{what} ({n})")).collect();
        parts.push(format!("{marked} of {} of links are marked: {}", counted(all, "row"), counts.join(", ")));
    }
    let skipped = runs.tally().skipped as usize;
    parts.extend((skipped > 0).then(|| format!("{} skipped", counted(skipped, "row"))));
    parts.extend(
        (remarks > 0).then(|| format!("{} on how the sides were measured", counted(remarks, "remark"))),
    );
    match (parts.is_empty(), publishable.is_complete() && marked + skipped + remarks == 0) {
        (true, _) => "No doubts.".into(),
        (false, true) => format!("No doubts: {}.", parts.join("; ")),
        (false, false) => format!("Doubts: {}.", parts.join("; ")),
    }
}

/// Returns what is said of each run whose rows come from a single launch.
fn one_launch(runs: &RunList<'_>) -> Vec<String> {
    let of_one = |entry: &RunEntry<'_>| {
        entry.rows().any(|r| is_ok(r.row) && !is_link(r.row) && r.row.launch_count() == 1)
    };
    let entries = runs.entries.iter().enumerate().filter(|(_, entry)| of_one(entry));
    entries.map(|(at, _)| with_run(runs, at, ONE_LAUNCH)).collect()
}

fn skipped(runs: &RunList<'_>) -> Vec<Finding> {
    let skipped = by_sentence(runs, |r| match &r.row.outcome {
        Outcome::Skipped(why) => Some(format!("{why}.")),
        _ => None,
    });
    skipped.into_iter().map(|(what, rows)| Finding::new("is-doubt", "Skipped", what).rows(rows)).collect()
}

/// Returns the marks of links in rounds: level, code, advice, and number of rows.
fn in_rounds<'a>(runs: &'a RunList<'_>) -> impl Iterator<Item = (Level, &'a MarkCode, &'a str, usize)> {
    runs.links_in_rounds().flat_map(LinkSweep::marks)
}

/// Marks of measured rows with this level, by code, the most frequent first.
fn marks(runs: &RunList<'_>, level: Level) -> Vec<Finding> {
    // Advice, rows, rows with other advice, and links in rounds.
    let mut found: BTreeMap<&MarkCode, (&str, Vec<usize>, usize, usize)> = BTreeMap::new();
    for r in runs.rows().filter(|r| is_ok(r.row)) {
        for notice in r.row.trust.iter().filter(|mark| mark.level == level) {
            let (advice, rows, others, _) =
                found.entry(&notice.code).or_insert((notice.advice.as_str(), vec![], 0, 0));
            *others += usize::from(*advice != notice.advice);
            if rows.last() != Some(&r.at) {
                rows.push(r.at);
            }
        }
    }
    for (_, code, advice, rows) in in_rounds(runs).filter(|(of, ..)| *of == level) {
        found.entry(code).or_insert((advice, vec![], 0, 0)).3 += rows;
    }
    let mut found: Vec<_> = found.into_iter().collect();
    sort_by_number(&mut found, |(_, (_, rows, _, links))| -((rows.len() + links) as i64));
    let links = runs.links_in_rounds().map(LinkSweep::row_count).sum::<usize>();
    let measured = runs.rows().filter(|r| is_ok(r.row)).count() + links;
    let (class, badge) = match level {
        Level::Invalid => ("is-bad", "Invalid"),
        Level::Caution => ("is-doubt", "Caution"),
        Level::Note => ("", "Note"),
    };
    let mut findings = Vec::new();
    for (code, (advice, rows, others, links)) in found {
        let marked = rows.len() + links;
        let all = marked == measured && marked > MAX_ROWS;
        let which = if all { "every row".into() } else { counted(marked, "row") };
        let similar = if others > 0 {
            format!(" ({} with other values)", counted(others, "row"))
        } else {
            String::new()
        };
        let finding = Finding::new(class, badge, format!("{}: {which}", capital(&code.phrase())));
        let finding = finding.more(format!("{advice}{similar}"));
        findings.push(finding.rows(if all { Vec::new() } else { rows }));
    }
    findings
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
