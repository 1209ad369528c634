//! Findings, the most severe first: wrong data, failures, incomplete runs, slow links, comparison, skipped rows, marks.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::{
    benchmark::payload::Check,
    result::{Level, Outcome},
};
use ombx_results::{
    compare::{Comparison, Counts},
    file::RunOutcome,
    publishable::Publishable,
    render::{ONE_LAUNCH, compare::summary},
    verdict::Conclusion,
};

use crate::{
    runs::{NumberedRow, RunEntry, RunList, count, is_link, is_ok},
    section::links::LinkRun,
};

/// Maximum number of rows that a finding links to.
const MAX_ROWS: usize = 6;

/// One entry of the list.
struct Finding {
    class: &'static str,
    badge: &'static str,
    what: String,
    advice: String,
    /// Numbers of the rows concerned.
    rows: Vec<usize>,
}

impl Finding {
    fn new(class: &'static str, badge: &'static str, what: impl Into<String>) -> Finding {
        Finding { class, badge, what: what.into(), advice: String::new(), rows: Vec::new() }
    }

    fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { advice: advice.into(), ..self }
    }

    fn rows(self, rows: Vec<usize>) -> Finding {
        Finding { rows, ..self }
    }
}

pub(crate) fn section(runs: &RunList<'_>, links: &[LinkRun], comparison: Option<&Comparison>) -> Markup {
    let tally = runs.tally();
    let marked = runs.rows().filter(|r| is_ok(r.row) && r.row.doubts().next().is_some()).count() as u64;
    let mut publishable = Publishable::default();
    runs.rows().filter(|r| !is_link(r.row)).for_each(|r| publishable.add(r.row));
    let launches = launches(runs);
    let cards = [
        ("rows", tally.cases, ""),
        ("measured", tally.cases - tally.skipped - tally.failed - tally.corrupt, ""),
        ("wrong data", tally.corrupt, "is-bad"),
        ("failed", tally.failed, "is-bad"),
        ("skipped", tally.skipped, "is-doubt"),
        ("with a mark", marked, "is-doubt"),
    ];
    let mut findings = failures(runs);
    findings.extend(incomplete(runs));
    findings.extend(slow_links(runs, links));
    findings.extend(comparison.map(compared).unwrap_or_default());
    findings.extend(skipped(runs));
    findings.extend(marks(runs, &[Level::Invalid, Level::Caution]));
    findings.extend(other_links(runs, links));
    if findings.iter().all(|f| f.class == "is-good") {
        findings.insert(
            0,
            Finding::new(
                "is-good",
                "All well",
                "Every row was measured and none has a mark that keeps it from being published.",
            ),
        );
    }
    let notes = marks(runs, &[Level::Note]);
    html! {
        section #attention aria-labelledby="attention-h" {
            h2 #attention-h { "What needs attention" }
            ul.cards {
                @if let Some((noun, text)) = &launches { li { b { (text) } (noun) } }
                @for (what, n, class) in cards { li class=[(n > 0 && !class.is_empty()).then_some(class)] { b { (n) } (what) } }
            }
            @if !publishable.is_empty() { p { (publishable.to_string()) "." } }
            @for sentence in one_launch(runs) { p { (sentence) } }
            (list(runs, &findings))
            @if !notes.is_empty() {
                details { summary { (count(notes.len(), "note")) } (list(runs, &notes)) }
            }
        }
    }
}

/// Returns the number of launches of each run, or the smallest and the largest, with its noun; `None` without benchmarks.
fn launches(runs: &RunList<'_>) -> Option<(&'static str, String)> {
    let each = || runs.entries.iter().filter(|entry| !entry.is_sweep()).map(RunEntry::launches);
    let (low, high) = (each().min()?, each().max()?);
    let text = if low == high { low.to_string() } else { format!("{low} to {high}") };
    Some((if high == 1 { "launch" } else { "launches" }, text))
}

/// Returns what is said of each run whose rows come from a single launch.
fn one_launch(runs: &RunList<'_>) -> Vec<String> {
    let of_one = |entry: &RunEntry<'_>| {
        entry.rows().any(|r| is_ok(r.row) && !is_link(r.row) && r.row.launch_count() == 1)
    };
    let entries = runs.entries.iter().enumerate().filter(|(_, entry)| of_one(entry));
    entries.map(|(at, _)| with_run(runs, at, ONE_LAUNCH)).collect()
}

fn list(runs: &RunList<'_>, findings: &[Finding]) -> Markup {
    html! {
        ul.findings {
            @for Finding { class, badge, what, advice, rows } in findings {
                li class=(class) {
                    span.badge { (badge) }
                    div {
                        p { b { (what) } }
                        @if !advice.is_empty() { p { (advice) } }
                        @if !rows.is_empty() { p.where { (row_links(runs, rows)) } }
                    }
                }
            }
        }
    }
}

fn row_links(runs: &RunList<'_>, rows: &[usize]) -> Markup {
    let key = |at: usize| {
        let row = runs.run_of(at).and_then(|entry| entry.run.rows.get(at - entry.first));
        row.map_or("", |row| row.key.as_str())
    };
    html! {
        "Rows: "
        @for (i, at) in rows.iter().take(MAX_ROWS).enumerate() {
            @if i > 0 { ", " }
            a href={ "#r" (at) } { (key(*at)) }
        }
        @if rows.len() > MAX_ROWS { " and " (rows.len() - MAX_ROWS) " more" }
    }
}

/// Groups rows by a sentence. Rows without one are left out.
fn by_sentence(
    runs: &RunList<'_>,
    sentence: impl Fn(&NumberedRow<'_>) -> Option<String>,
) -> BTreeMap<String, Vec<usize>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for row in runs.rows() {
        if let Some(text) = sentence(&row) {
            found.entry(text).or_default().push(row.at);
        }
    }
    found
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
        .map(|(what, rows)| Finding::new("is-bad", "Wrong data", what).advice(advice).rows(rows));
    let failed = failed.into_iter().map(|(what, rows)| Finding::new("is-bad", "Failed", what).rows(rows));
    wrong.chain(failed).collect()
}

/// Runs that did not complete.
fn incomplete(runs: &RunList<'_>) -> Vec<Finding> {
    let finding = |entry: &RunEntry<'_>| {
        let after = format!("{} after {}", entry.name, count(entry.run.rows.len(), "row"));
        let (badge, why, advice) = match (entry.cut_off, entry.run.end, entry.outcome()) {
            (true, ..) => {
                ("Cut off", "the file ends inside a record.", "The page shows all rows before that record.")
            }
            (_, None, _) => (
                "No end",
                "the run has no end record.",
                "It was killed, or its file was copied before it ended.",
            ),
            (_, _, RunOutcome::Broken) => ("Not complete", "a rank, a launcher or a connection failed.", ""),
            (_, _, RunOutcome::Interrupted) => {
                ("Not complete", "interrupted.", "The page shows all rows measured before.")
            }
            (_, _, RunOutcome::Complete) => return None,
        };
        Some(Finding::new("is-bad", badge, format!("{after}: {why}")).advice(advice))
    };
    runs.entries.iter().filter_map(finding).collect()
}

fn slow_links(runs: &RunList<'_>, links: &[LinkRun]) -> Vec<Finding> {
    let of_run = |links: &LinkRun| {
        let slow = links.sentences().into_iter().filter(|(conclusion, ..)| *conclusion == Conclusion::Slow);
        let finding = |(_, sentence, evidence): (Conclusion, String, Vec<String>)| {
            let what = with_run(runs, links.run, sentence.trim_start_matches("verdict: "));
            Finding::new("is-bad", "Slow", what).advice(evidence.join(" "))
        };
        slow.map(finding).collect::<Vec<_>>()
    };
    links.iter().flat_map(of_run).collect()
}

fn compared(comparison: &Comparison) -> Vec<Finding> {
    let Counts { worse, better, inconclusive, .. } = comparison.counts();
    let mut findings = Vec::new();
    if !comparison.broken.is_empty() {
        let what = format!("{} failed on the new side only.", count(comparison.broken.len(), "case"));
        findings.push(Finding::new("is-bad", "Broken", what));
    }
    let (class, word) = match (worse, better, inconclusive) {
        (1.., ..) => ("is-bad", "Worse"),
        (0, 1.., _) => ("is-good", "Better"),
        (0, 0, 1..) => ("is-doubt", "Undecided"),
        (0, 0, 0) => ("is-good", "Same"),
    };
    findings.push(Finding::new(class, word, format!("{}.", summary(comparison))));
    findings
}

/// Puts the name of the run in front of a sentence if there are several runs.
fn with_run(runs: &RunList<'_>, at: usize, sentence: &str) -> String {
    match runs.entries.len() {
        1 => sentence.to_owned(),
        _ => format!("{}: {sentence}", runs.entries[at].name),
    }
}

fn skipped(runs: &RunList<'_>) -> Vec<Finding> {
    let skipped = by_sentence(runs, |r| match &r.row.outcome {
        Outcome::Skipped(why) => Some(format!("{why}.")),
        _ => None,
    });
    skipped.into_iter().map(|(what, rows)| Finding::new("is-doubt", "Skipped", what).rows(rows)).collect()
}

/// Marks of measured rows with one of these levels, by level and code; the most frequent of a level first.
fn marks(runs: &RunList<'_>, levels: &[Level]) -> Vec<Finding> {
    levels.iter().flat_map(|level| marks_of_level(runs, *level)).collect()
}

fn marks_of_level(runs: &RunList<'_>, level: Level) -> Vec<Finding> {
    let mut found: BTreeMap<&str, (&str, Vec<usize>, usize)> = BTreeMap::new();
    for r in runs.rows().filter(|r| is_ok(r.row)) {
        for notice in r.row.trust.iter().filter(|mark| mark.level == level) {
            let (advice, rows, others) =
                found.entry(notice.code.as_str()).or_insert((notice.advice.as_str(), vec![], 0));
            *others += usize::from(*advice != notice.advice);
            if rows.last() != Some(&r.at) {
                rows.push(r.at);
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (_, rows, _))| std::cmp::Reverse(rows.len()));
    let measured = runs.rows().filter(|r| is_ok(r.row)).count();
    let finding = |(code, (advice, rows, others)): (&str, (&str, Vec<usize>, usize))| {
        let all = rows.len() == measured && rows.len() > MAX_ROWS;
        let which = if all { "every row".into() } else { count(rows.len(), "row") };
        let similar =
            if others > 0 { format!(" ({} with other values)", count(others, "row")) } else { String::new() };
        let (class, badge) = match level {
            Level::Invalid => ("is-bad", "Invalid"),
            Level::Caution => ("is-doubt", "Caution"),
            Level::Note => ("", "Note"),
        };
        Finding::new(class, badge, format!("{}: {which}", code.replace('_', " ")))
            .advice(format!("{advice}{similar}"))
            .rows(if all { Vec::new() } else { rows })
    };
    found.into_iter().map(finding).collect()
}

/// Links without a verdict, and links of which none is slow.
fn other_links(runs: &RunList<'_>, links: &[LinkRun]) -> Vec<Finding> {
    let finding = |links: &LinkRun| {
        let class = match links.conclusion() {
            Conclusion::None => "",
            Conclusion::Clear => "is-good",
            Conclusion::Slow => return None,
        };
        let (_, sentence, evidence) = links.sentences().into_iter().next()?;
        let what = with_run(runs, links.run, sentence.trim_start_matches("verdict: "));
        Some(Finding::new(class, "Links", what).advice(evidence.join(" ")))
    };
    links.iter().filter_map(finding).collect()
}
