//! The answer, which is read first: wrong data, failures, incomplete runs, verdicts on links, the comparison, or main figures.
//! Everything that casts doubt on it is one line that unfolds.

use maud::{Markup, html};
use ombx_compare::{Comparison, Counts};
use ombx_estimate::{
    impact::LoadImpacts,
    number::{Decimals, Units},
    text::heading,
};
use ombx_record::{
    order::grouped,
    result::{Check, Measurement, Metric, Outcome, OverLaunches, RunOutcome},
    unit::{Bytes, counted},
    verdict::Conclusion,
};
use ombx_show::{compare, provenance};

use crate::{
    run_list::{RunEntry, RunList, is_link, is_ok},
    section::{
        finding::{Finding, as_sentence, by_sentence, list, with_run},
        links::LinkRun,
        rows,
    },
};

/// Maximum number of series with a main figure.
const MAX_FIGURES: usize = 8;

pub(crate) fn section(runs: &RunList<'_>, links: &[LinkRun], comparison: Option<&Comparison>) -> Markup {
    let mut findings = failures(runs);
    findings.extend(incomplete(runs));
    findings.extend(comparison.map(compared).unwrap_or_default());
    findings.extend(links.iter().flat_map(|links| verdicts(runs, links)));
    findings.extend(under_load(runs));
    let figures = if comparison.is_none() { main_figures(runs) } else { Vec::new() };
    html! {
        section #answer aria-labelledby="answer-h" {
            h2 #answer-h { "Answer" }
            @if !findings.is_empty() { (list(runs, &findings)) }
            @if !figures.is_empty() {
                dl.facts {
                    @for (name, figure) in figures.iter().take(MAX_FIGURES) { div { dt { (name) } dd { (figure) } } }
                }
                @if figures.len() > MAX_FIGURES { p.soft { "The charts show " (figures.len() - MAX_FIGURES) " more series." } }
            }
            (tally(runs))
            (rows::fold(runs, comparison))
        }
    }
}

/// Returns one line with the number of launches and rows. Rows without figures are named if there are some.
fn tally(runs: &RunList<'_>) -> Markup {
    let tally = runs.tally();
    let measured = tally.cases - tally.skipped - tally.failed - tally.corrupt;
    let others = [
        ("wrong data", tally.corrupt, "is-bad"),
        ("failed", tally.failed, "is-bad"),
        ("skipped", tally.skipped, "is-doubt"),
    ];
    html! {
        p.tally {
            @if let Some((noun, text)) = launches(runs) { span { b { (text) } " " (noun) } " " }
            span { b { (tally.cases) } (if tally.cases == 1 { " row" } else { " rows" }) } " "
            span { b { (measured) } " measured" }
            @for (what, n, class) in others.into_iter().filter(|(_, n, _)| *n > 0) { " " span.(class) { b { (n) } " " (what) } }
        }
    }
}

/// Returns the number of launches of each run, or the smallest and the largest, with its noun; `None` without benchmarks.
fn launches(runs: &RunList<'_>) -> Option<(&'static str, String)> {
    let benchmarks = || runs.entries.iter().filter(|entry| !entry.swept.is_sweep()).map(|entry| entry.run);
    let each = || benchmarks().map(provenance::launches);
    let (low, high) = (each().min()?, each().max()?);
    let text = if low == high { low.to_string() } else { format!("{low} to {high}") };
    Some((if high == 1 { "launch" } else { "launches" }, text))
}

/// Returns the main figure of each series: the time of the smallest message, or the largest bandwidth.
fn main_figures(runs: &RunList<'_>) -> Vec<(String, String)> {
    let entries = runs.entries.iter().enumerate();
    let rows = entries.flat_map(|(at, entry)| entry.rows().map(move |numbered| (at, numbered.row)));
    let rows = rows.filter(|(_, row)| is_ok(row) && !is_link(row) && row.headline().is_some());
    let mut figures = Vec::new();
    for ((run, name), rows) in grouped(rows.map(|(at, row)| ((at, heading(row)), row))) {
        if let Some(figure) = main_figure(rows, runs.units) {
            figures.push((with_run(runs, run, &name), figure));
        }
    }
    figures
}

/// Returns the main figure of the rows of a series, with its interval and size.
fn main_figure(rows: Vec<&Measurement>, units: Units) -> Option<String> {
    let row = rows.into_iter().reduce(|main, row| if is_before(row, main) { row } else { main })?;
    let figure = units.of_headline(row.metric, row.headline()?);
    let decimals = Decimals::new(figure.value, figure.ci95);
    let mut text = format!("{} {}", decimals.format(figure.value), units.symbol(row.metric));
    if let Some([low, high]) = figure.ci95 {
        // Few launches have a range with less coverage.
        let coverage = row.over_launches().map_or(0.95, OverLaunches::coverage).min(0.95);
        let ends = [low, high].map(|end| decimals.format(end)).join(" to ");
        text += &format!(" ({:.0} %: {ends})", coverage * 100.0);
    }
    if let Some(bytes) = row.bytes {
        text += &format!(" for {}", Bytes(bytes).with_noun());
    }
    Some(text)
}

/// Returns whether a row has the main figure of its series rather than another row.
fn is_before(row: &Measurement, other: &Measurement) -> bool {
    let rate = |row: &Measurement| row.headline().map_or(0.0, |figure| figure.value);
    match row.metric {
        Metric::Latency => row.bytes < other.bytes,
        Metric::Bandwidth => rate(row) > rate(other),
    }
}

fn failures(runs: &RunList<'_>) -> Vec<Finding> {
    let wrong = by_sentence(runs, |r| match &r.row.check {
        Check::Failed(mismatch) => Some(format!("Data arrived wrong: {mismatch}.")),
        _ => None,
    });
    let failed = by_sentence(runs, |r| match (&r.row.check, &r.row.outcome) {
        (Check::Failed(_), _) => None,
        (_, Outcome::Failed(why)) => Some(format!("Failed: {why}.")),
        _ => None,
    });
    let advice = "The charts leave out these rows: their figures do not measure a correct transfer.";
    let wrong = wrong
        .into_iter()
        .map(|(what, rows)| Finding::new("is-bad", "Wrong data", what).more(advice).rows(rows));
    let failed = failed.into_iter().map(|(what, rows)| Finding::new("is-bad", "Failed", what).rows(rows));
    wrong.chain(failed).collect()
}

/// Runs that did not complete.
fn incomplete(runs: &RunList<'_>) -> Vec<Finding> {
    runs.entries.iter().filter_map(early_end).collect()
}

/// Returns how a run ended; `None` if it is complete.
fn early_end(entry: &RunEntry<'_>) -> Option<Finding> {
    let after = format!("{} after {}", entry.name, counted(entry.swept.row_count(), "row"));
    let (badge, why, advice) = match (entry.cut_off, entry.run.end, entry.outcome()) {
        (true, ..) => {
            ("Cut off", "the file ends inside a record.", "The page shows all rows before that record.")
        }
        (_, None, _) => {
            ("No end", "the run has no end record.", "It was killed, or its file was copied before it ended.")
        }
        (_, _, RunOutcome::Broken) => ("Not complete", "a rank, a launcher or a connection failed.", ""),
        (_, _, RunOutcome::Interrupted) => {
            ("Not complete", "interrupted.", "The page shows all rows measured before.")
        }
        (_, _, RunOutcome::Complete) => return None,
    };
    Some(Finding::new("is-bad", badge, format!("{after}: {why}")).more(advice))
}

/// Returns the sentences of a verdict with their evidence.
fn verdicts(runs: &RunList<'_>, links: &LinkRun) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, sentence) in links.verdict.sentences.iter().enumerate() {
        let (class, badge) = match sentence.conclusion {
            Conclusion::Slow => ("is-bad", "Slow"),
            Conclusion::Errors => ("is-bad", "Errors"),
            Conclusion::Unsteady => ("is-bad", "Unsteady"),
            Conclusion::Shared => ("is-bad", "Shared bottleneck"),
            Conclusion::Clear => ("is-good", "Links"),
            Conclusion::None => ("", "No verdict"),
        };
        let what = if at == 0 { with_run(runs, links.run, &sentence.text) } else { sentence.text.clone() };
        let evidence = sentence.evidence.iter().map(|text| as_sentence(text, &STARTS));
        findings.push(evidence.fold(Finding::new(class, badge, as_sentence(&what, &STARTS)), Finding::more));
    }
    findings
}

/// Returns what loads of the network do to rows that were measured without them too.
fn under_load(runs: &RunList<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, entry) in runs.entries.iter().enumerate() {
        let mut impacts = LoadImpacts::default();
        entry.rows().for_each(|numbered| impacts.add(numbered.row));
        for text in impacts.sentences(runs.units, Units::symbol) {
            let sentence = as_sentence(&with_run(runs, at, &text), &STARTS);
            findings.push(Finding::new("", "Under load", sentence));
        }
    }
    findings
}

/// Beginnings of clauses that are no names of hosts and files.
const STARTS: [&str; 10] =
    ["the ", "host ", "no ", "evidence", "besides", "not ", "links ", "ranks ", "latency ", "bandwidth "];

fn compared(comparison: &Comparison) -> Vec<Finding> {
    let Counts { worse, better, undecided, .. } = comparison.counts();
    let (class, badge) = match (worse + comparison.broken.len(), better, undecided) {
        (1.., ..) => ("is-bad", "Worse"),
        (0, 1.., _) => ("is-good", "Better"),
        (0, 0, 1..) => ("is-doubt", "Undecided"),
        (0, 0, 0) => ("is-good", "Same"),
    };
    vec![Finding::new(class, badge, format!("{}.", compare::sentence(comparison)))]
}
