//! What needs attention, the worst first: wrong data, failures, runs without an end, slow links, then doubts with what to do.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::{benchmark::payload::Check, result::Outcome as RowOutcome};
use ombx_results::{compare::Comparison, wire::Outcome};

use crate::{
    book::{Book, Numbered, count, is_sound},
    comparison,
    links::Verdict,
};

/// Rows that a finding links to; of more it says how many.
const MOST_ROWS: usize = 6;

/// One thing that a reader should know.
struct Finding {
    class: &'static str,
    badge: &'static str,
    what: String,
    advice: String,
    rows: Vec<usize>,
}

/// The first section.
pub(crate) fn section(
    book: &Book<'_>,
    verdicts: &[(usize, Verdict)],
    comparison: Option<&Comparison>,
) -> Markup {
    let tally = book.tally();
    let doubtful = book.rows().filter(|r| is_sound(r.row) && !r.row.trust.is_empty()).count() as u64;
    let cards = [
        ("rows", tally.cases, ""),
        ("measured", tally.cases - tally.skipped - tally.failed - tally.corrupt, ""),
        ("wrong data", tally.corrupt, "is-bad"),
        ("failed", tally.failed, "is-bad"),
        ("skipped", tally.skipped, "is-doubt"),
        ("with a notice", doubtful, "is-doubt"),
    ];
    let mut findings = troubles(book);
    findings.extend(slow(book, verdicts));
    findings.extend(comparison.map(compared).unwrap_or_default());
    findings.extend(skips(book));
    findings.extend(notices(book));
    findings.extend(quiet(book, verdicts));
    if findings.iter().all(|f| f.class == "is-good") {
        findings.insert(
            0,
            Finding {
                class: "is-good",
                badge: "All well",
                what: "Every row was measured, and nothing is known against any of them.".into(),
                advice: String::new(),
                rows: Vec::new(),
            },
        );
    }
    html! {
        section #attention aria-labelledby="attention-h" {
            h2 #attention-h { "What needs attention" }
            ul.cards {
                @for (what, n, class) in cards { li class=[(n > 0 && !class.is_empty()).then_some(class)] { b { (n) } (what) } }
            }
            ul.findings {
                @for Finding { class, badge, what, advice, rows } in &findings {
                    li class=(class) {
                        span.badge { (badge) }
                        div {
                            p { b { (what) } }
                            @if !advice.is_empty() { p { (advice) } }
                            @if !rows.is_empty() { p.where { (places(book, rows)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Links to rows.
fn places(book: &Book<'_>, rows: &[usize]) -> Markup {
    let key = |at: usize| {
        let chapter = book.runs.iter().rev().find(|chapter| chapter.first <= at);
        chapter
            .and_then(|chapter| chapter.run.rows.get(at - chapter.first))
            .map_or("", |row| row.key.as_str())
    };
    html! {
        "Rows: "
        @for (i, at) in rows.iter().take(MOST_ROWS).enumerate() {
            @if i > 0 { ", " }
            a href={ "#r" (at) } { (key(*at)) }
        }
        @if rows.len() > MOST_ROWS { " and " (rows.len() - MOST_ROWS) " more" }
    }
}

/// Rows with the same sentence.
fn alike<'a>(rows: impl Iterator<Item = (Numbered<'a>, String)>) -> BTreeMap<String, Vec<usize>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    rows.for_each(|(numbered, why)| found.entry(why).or_default().push(numbered.at));
    found
}

fn troubles(book: &Book<'_>) -> Vec<Finding> {
    let bad = |badge, what, advice: &str, rows| Finding {
        class: "is-bad",
        badge,
        what,
        advice: advice.into(),
        rows,
    };
    let corrupt = |row: &Numbered<'_>| matches!(row.row.check, Check::Failed(_));
    let wrong = alike(book.rows().filter(corrupt).filter_map(|r| match &r.row.check {
        Check::Failed(mismatch) => Some((r, format!("Data arrived wrong: {mismatch}."))),
        _ => None,
    }));
    let failed = alike(book.rows().filter(|r| !corrupt(r)).filter_map(|r| match &r.row.outcome {
        RowOutcome::Failed(why) => Some((r, format!("Failed: {why}."))),
        _ => None,
    }));
    let mut findings = Vec::new();
    for (what, rows) in wrong {
        findings.push(bad(
            "Wrong data",
            what,
            "Figures of these rows are of something else; they are not drawn.",
            rows,
        ));
    }
    findings.extend(failed.into_iter().map(|(what, rows)| bad("Failed", what, "", rows)));
    for chapter in &book.runs {
        let after = format!("{} after {}", chapter.name, count(chapter.run.rows.len(), "row"));
        match (chapter.cut_off, chapter.run.end, chapter.outcome()) {
            (true, ..) => findings.push(bad(
                "Cut off",
                format!("{after}: the file stops in the middle of a record."),
                "Everything before it is here.",
                vec![],
            )),
            (_, None, _) => findings.push(bad(
                "No end",
                format!("{after}: the run did not come to its end."),
                "It was killed, or its file was copied while it ran.",
                vec![],
            )),
            (_, _, Outcome::Broken) => findings.push(bad(
                "Not complete",
                format!("{after}: a rank, a launcher or a connection failed."),
                "",
                vec![],
            )),
            (_, _, Outcome::Interrupted) => findings.push(bad(
                "Not complete",
                format!("{after}: interrupted."),
                "What was measured before is here.",
                vec![],
            )),
            (_, _, Outcome::Complete) => {}
        }
    }
    findings
}

fn slow(book: &Book<'_>, verdicts: &[(usize, Verdict)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, verdict) in verdicts {
        let Verdict::Found(found) = verdict else { continue };
        for (_, sentence) in found {
            let what = format!("{}.", of_run(book, *at, sentence));
            findings.push(Finding {
                class: "is-bad",
                badge: "Slow",
                what,
                advice: String::new(),
                rows: vec![],
            });
        }
    }
    findings
}

/// What a comparison found.
fn compared(comparison: &Comparison) -> Vec<Finding> {
    let [worse, better, unresolved] = comparison::tally(comparison);
    let finding = |class, badge, what| Finding { class, badge, what, advice: String::new(), rows: vec![] };
    let mut findings = Vec::new();
    let broken = comparison.broken.len();
    if broken > 0 {
        findings.push(finding(
            "is-bad",
            "Broken",
            format!("{} failed on the new side only.", count(broken, "case")),
        ));
    }
    if worse > 0 {
        findings.push(finding(
            "is-bad",
            "Worse",
            format!("{} worse than the base, {better} better.", count(worse, "case")),
        ));
    } else if better > 0 {
        findings.push(finding(
            "is-good",
            "Better",
            format!("{} better than the base, none worse.", count(better, "case")),
        ));
    } else {
        findings.push(finding(
            "",
            "Compared",
            format!("No verdict for any of {}: better or worse.", count(unresolved, "case")),
        ));
    }
    findings
}

fn of_run(book: &Book<'_>, at: usize, sentence: &str) -> String {
    match book.runs.len() {
        1 => sentence.to_owned(),
        _ => format!("{}: {sentence}", book.runs[at].name),
    }
}

fn skips(book: &Book<'_>) -> Vec<Finding> {
    let skipped = alike(book.rows().filter_map(|r| match &r.row.outcome {
        RowOutcome::Skipped(why) => Some((r, format!("{why}."))),
        _ => None,
    }));
    let finding =
        |(what, rows)| Finding { class: "is-doubt", badge: "Skipped", what, advice: String::new(), rows };
    skipped.into_iter().map(finding).collect()
}

/// Trust notices of rows that were measured, by code; the most frequent first.
fn notices(book: &Book<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<&str, (&str, Vec<usize>, usize)> = BTreeMap::new();
    for r in book.rows().filter(|r| is_sound(r.row)) {
        for notice in &r.row.trust {
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
    let measured = book.rows().filter(|r| is_sound(r.row)).count();
    let finding = |(code, (advice, rows, others)): (&str, (&str, Vec<usize>, usize))| {
        let all = rows.len() == measured && rows.len() > MOST_ROWS;
        let what = if all { "every row".into() } else { count(rows.len(), "row") };
        let likewise =
            if others > 0 { format!(" (and {} likewise)", count(others, "row")) } else { String::new() };
        Finding {
            class: "is-doubt",
            badge: "Doubt",
            what: format!("{}: {what}", code.replace('_', " ")),
            advice: format!("{advice}{likewise}"),
            rows: if all { Vec::new() } else { rows },
        }
    };
    found.into_iter().map(finding).collect()
}

/// Links that say nothing, or nothing bad.
fn quiet(book: &Book<'_>, verdicts: &[(usize, Verdict)]) -> Vec<Finding> {
    let told = |(at, verdict): &(usize, Verdict)| {
        let (class, sentence) = match verdict {
            Verdict::None(why) => ("", format!("no verdict: {why}.")),
            Verdict::Found(found) if found.is_empty() => {
                ("is-good", "no host, rank or link stands out.".to_owned())
            }
            Verdict::Found(_) => return None,
        };
        let what = of_run(book, *at, &sentence);
        Some(Finding { class, badge: "Links", what, advice: String::new(), rows: vec![] })
    };
    verdicts.iter().filter_map(told).collect()
}
