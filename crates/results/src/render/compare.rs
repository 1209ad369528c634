//! Comparison as text tables.

mod json;
mod markdown;
mod sentence;
mod summary;
#[cfg(test)]
mod tests;

use std::io::{Result, Write};

pub use self::{json::json, markdown::markdown, sentence::sentence, summary::summary};
use super::{
    Paint,
    grid::{NO_VALUE, grid, interval, size},
    plain,
    table::title,
};
use crate::{
    compare::{CaseComparison, CaseId, Comparison, LaunchMedians, Note, Reason, Side, SideInfo, Verdict},
    number::figure,
};

/// Maximum length of a label in the title of a column.
const LONGEST_LABEL: usize = 10;

/// Writes a comparison: one table per benchmark and choice of axes, then cases of one side, notes, and the summary.
pub fn table(out: &mut dyn Write, comparison: &Comparison, paint: Paint) -> Result<()> {
    let sides = [&comparison.base, &comparison.new];
    let width = sides.iter().map(|side| side.label.chars().count()).max().unwrap_or(0);
    for side in sides {
        writeln!(out, "{:width$}  {}", plain(&side.label), plain(&describe(side)))?;
    }
    for cases in comparison.cases.chunk_by(|a, b| heading(&a.id) == heading(&b.id)) {
        writeln!(out, "\n{}", paint.heading(&plain(&heading(&cases[0].id))))?;
        let has_interval = cases.iter().any(|case| case.change.ci90.is_some());
        let grid = if has_interval { intervals } else { ranges };
        writeln!(out, "{}", grid(comparison, cases, paint))?;
    }
    writeln!(out)?;
    for (key, why) in &comparison.broken {
        let label = &comparison.new.label;
        writeln!(out, "{}", paint.bad(&plain(&format!("FAILED only in {label}: {key}: {why}"))))?;
    }
    for lost in &comparison.unmatched {
        let (has, not) = match lost.only {
            Side::Base => (sides[0], sides[1]),
            Side::New => (sides[1], sides[0]),
        };
        let text = format!("only in {}: {} ({}: {})", has.label, lost.key, not.label, lost.why);
        writeln!(out, "{}", plain(&text))?;
    }
    for Note { text, .. } in &comparison.notes {
        writeln!(out, "{}", plain(text))?;
    }
    writeln!(out, "{}", plain(&sentence(comparison)))
}

/// Formats a fraction as a signed percentage: `+10.1%`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() >= 1000.0 { format!("{percent:+.0}%") } else { format!("{percent:+.1}%") }
}

/// Formats a margin: `5%`.
pub fn margin(fraction: f64) -> String {
    format!("{}%", (fraction * 1e6).round() / 1e4)
}

/// Formats a verdict: `same within 5%`.
pub fn verdict(verdict: &Verdict, within: f64) -> String {
    match verdict {
        Verdict::Same => format!("same within {}", margin(within)),
        Verdict::Inconclusive(reason) => format!("inconclusive: {reason}"),
        Verdict::Worse | Verdict::Better => verdict.name().to_owned(),
    }
}

fn describe(side: &SideInfo) -> String {
    let launches = side.launches;
    let plural = if launches == 1 { "" } else { "es" };
    let libraries: Vec<&str> = side.libraries.iter().map(String::as_str).collect();
    format!("{} · {launches} launch{plural} · {}", side.name, libraries.join(", "))
}

fn heading(id: &CaseId) -> String {
    title(&id.bench, &id.axes, id.depth, id.pairs)
}

/// Returns the titles of the columns with figures of the sides.
fn side_titles(comparison: &Comparison, cases: &[CaseComparison]) -> [String; 2] {
    let label = |side: &SideInfo| side.label.chars().take(LONGEST_LABEL).collect::<String>();
    let title = |side| plain(&format!("{} {}", label(side), cases[0].id.unit));
    [title(&comparison.base), title(&comparison.new)]
}

/// Returns the table of cases with intervals.
fn intervals(comparison: &Comparison, cases: &[CaseComparison], paint: Paint) -> String {
    let [base, new] = side_titles(comparison, cases);
    let titles = ["bytes", &base, &new, "time", "90% interval", "finds", "verdict"];
    let mut grid = grid(titles.map(str::to_owned), 0..6);
    for case in cases {
        grid.add_row([
            size(case.id.bytes),
            figure(case.base.median),
            figure(case.new.median),
            percent(case.change.estimate),
            interval(case.change.ci90, percent),
            case.power.map_or(NO_VALUE.into(), |power| finds(power.detectable)),
            verdict_cell(case, comparison.margin, paint),
        ]);
    }
    grid.trim_fmt()
}

/// Returns the table of cases that have too few launches for an interval.
fn ranges(comparison: &Comparison, cases: &[CaseComparison], paint: Paint) -> String {
    let [base, new] = side_titles(comparison, cases);
    let titles = ["bytes", &base, "range", &new, "range", "time", "verdict"];
    let mut grid = grid(titles.map(str::to_owned), 0..6);
    for case in cases {
        grid.add_row([
            size(case.id.bytes),
            figure(case.base.median),
            range(&case.base),
            figure(case.new.median),
            range(&case.new),
            percent(case.change.estimate),
            verdict_cell(case, comparison.margin, paint),
        ]);
    }
    grid.trim_fmt()
}

fn range(side: &LaunchMedians) -> String {
    interval((side.launches.len() > 1).then(|| side.range()), figure)
}

/// Formats the smallest detectable difference with two digits.
fn finds(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = usize::from(percent < 10.0);
    if percent >= 1000.0 { ">1000%".into() } else { format!("{percent:.digits$}%") }
}

/// Returns the verdict without its reason, which stands in the summary.
fn verdict_cell(case: &CaseComparison, within: f64, paint: Paint) -> String {
    match &case.verdict {
        Verdict::Better => paint.good("better"),
        Verdict::Worse => paint.bad("worse"),
        Verdict::Same => verdict(&case.verdict, within),
        Verdict::Inconclusive(Reason::SizeUnknown) => "differs".into(),
        Verdict::Inconclusive(_) => "inconclusive".into(),
    }
}
