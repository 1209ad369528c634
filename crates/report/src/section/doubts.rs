//! What casts doubt on the figures, as one line that unfolds: skipped rows, marks, and rows of a single launch.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::{
    result::{Level, Outcome},
    trust,
};
use ombx_results::{compare::Comparison, publishable::Publishable, render::ONE_LAUNCH};

use super::finding::{Finding, MAX_ROWS, by_sentence, list, with_run};
use crate::runs::{RunEntry, RunList, count, is_link, is_ok};

/// Returns the line and what it unfolds.
pub(crate) fn fold(runs: &RunList<'_>, comparison: Option<&Comparison>) -> Markup {
    let mut doubts = skipped(runs);
    doubts.extend(marks(runs, &[Level::Invalid, Level::Caution]));
    let remarks = comparison.map_or(&[][..], |comparison| &comparison.notes);
    let line = line(runs, remarks.len());
    let (notes, single) = (marks(runs, &[Level::Note]), one_launch(runs));
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
                details { summary { (count(notes.len(), "note")) } (list(runs, &notes)) }
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
    let marked = links().filter(|r| r.row.doubts().next().is_some()).count();
    if marked > 0 {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let codes = links().flat_map(|r| r.row.doubts()).map(|mark| trust::phrase(&mark.code));
        codes.for_each(|what| *counts.entry(what).or_default() += 1);
        let counts: Vec<String> = counts.iter().map(|(what, n)| format!("{what} ({n})")).collect();
        parts.push(format!(
            "{marked} of {} of links are marked: {}",
            count(links().count(), "row"),
            counts.join(", ")
        ));
    }
    let skipped = runs.tally().skipped as usize;
    parts.extend((skipped > 0).then(|| format!("{} skipped", count(skipped, "row"))));
    parts.extend(
        (remarks > 0).then(|| format!("{} on how the sides were measured", count(remarks, "remark"))),
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
        Finding::new(class, badge, format!("{}: {which}", capital(&trust::phrase(code))))
            .more(format!("{advice}{similar}"))
            .rows(if all { Vec::new() } else { rows })
    };
    found.into_iter().map(finding).collect()
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
