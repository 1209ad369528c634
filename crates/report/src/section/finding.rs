//! Findings: entries of a list, each with a badge, sentences, and links to the rows concerned.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_estimate::text::heading;
use ombx_record::unit::Bytes;

use crate::run_list::{NumberedRow, RunList, is_link};

/// Maximum number of rows that a finding links to.
pub(super) const MAX_ROWS: usize = 6;

/// One entry of a list.
pub(super) struct Finding {
    class: &'static str,
    badge: &'static str,
    what: String,
    /// Sentences below: evidence, or what to do.
    more: Vec<String>,
    /// Numbers of the rows concerned.
    rows: Vec<usize>,
}

impl Finding {
    pub(super) fn new(class: &'static str, badge: &'static str, what: impl Into<String>) -> Finding {
        Finding { class, badge, what: what.into(), more: Vec::new(), rows: Vec::new() }
    }

    pub(super) fn more(mut self, sentence: impl Into<String>) -> Finding {
        let sentence = sentence.into();
        self.more.extend((!sentence.is_empty()).then_some(sentence));
        self
    }

    pub(super) fn rows(self, rows: Vec<usize>) -> Finding {
        Finding { rows, ..self }
    }
}

pub(super) fn list(runs: &RunList<'_>, findings: &[Finding]) -> Markup {
    html! {
        ul.findings {
            @for Finding { class, badge, what, more, rows } in findings {
                li class=(class) {
                    span.badge { (badge) }
                    div {
                        p { b { (what) } }
                        @for sentence in more { p { (sentence) } }
                        @if !rows.is_empty() { p.where { (row_links(runs, rows)) } }
                    }
                }
            }
        }
    }
}

/// Returns links to the first rows, by the names that people read.
fn row_links(runs: &RunList<'_>, rows: &[usize]) -> Markup {
    html! {
        "Rows: "
        @for (i, at) in rows.iter().take(MAX_ROWS).enumerate() {
            @if i > 0 { "; " }
            a href={ "#r" (at) } { (row_name(runs, *at).unwrap_or_default()) }
        }
        @if rows.len() > MAX_ROWS { " and " (rows.len() - MAX_ROWS) " more" }
    }
}

/// Returns the name of a row: its link or its benchmark, and its size.
fn row_name(runs: &RunList<'_>, at: usize) -> Option<String> {
    let entry = runs.run_of(at)?;
    let row = entry.run.rows.get(at - entry.first)?;
    let end = |axis: &str| {
        let rank: usize = row.axes.get(axis)?.parse().ok()?;
        Some(format!("{} {rank}", entry.run.run.places.get(rank)?.host))
    };
    let link = end("from").zip(end("to")).filter(|_| is_link(row));
    let name = link.map_or_else(|| heading(row), |(from, to)| format!("{from} to {to}"));
    let size = row.bytes.map(|bytes| format!(", {}", Bytes(bytes).with_noun()));
    Some(format!("{name}{}", size.unwrap_or_default()))
}

/// Returns a clause as a sentence. It gets a capital letter if it begins with one of these: names keep their letters.
pub(super) fn as_sentence(clause: &str, starts: &[&str]) -> String {
    let mut text = clause.to_owned();
    if starts.iter().any(|start| clause.starts_with(start)) {
        text[..1].make_ascii_uppercase();
    }
    text + "."
}

/// Groups rows by a sentence. Rows without one are left out.
pub(super) fn by_sentence(
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

/// Puts the name of the run in front of a sentence if there are several runs.
pub(super) fn with_run(runs: &RunList<'_>, at: usize, sentence: &str) -> String {
    match runs.entries.len() {
        1 => sentence.to_owned(),
        _ => format!("{}: {sentence}", runs.entries[at].name),
    }
}
