//! Comparison as text tables.

mod markdown;
mod sentence;

use std::io::{Result, Write};

use super::{
    Paint, plain,
    table::{
        fit::{Fitted, NO_VALUE, fitted, grid, interval, size},
        title,
    },
    wrapped,
};
use crate::{
    compare::{
        CaseComparison, CaseId, Comparison, DecidedBy, Note, Reason, Side, SideInfo, UnitMedians, Verdict,
    },
    number::figure,
};

pub(super) use self::markdown::present;
pub use self::{
    markdown::{comparison_json, markdown},
    sentence::{sentence, summary},
};

#[cfg(test)]
mod tests;

/// Maximum length of a label in the title of a column.
const LONGEST_LABEL: usize = 10;

/// Writes a comparison: one table per benchmark and choice of axes, then cases of one side, notes, and the summary. Lines fit into this
/// many columns of a terminal; `None` means that there is no limit.
pub fn table(
    out: &mut dyn Write,
    comparison: &Comparison,
    paint: Paint,
    columns: Option<usize>,
) -> Result<()> {
    let fit =
        |text: &str| columns.map_or_else(|| text.to_owned(), |columns| wrapped(text, columns).join("\n"));
    let sides = [&comparison.base, &comparison.new];
    let width = sides.iter().map(|side| side.label.chars().count()).max().unwrap_or(0);
    for side in sides {
        let text = format!("{:width$}  {}", plain(&side.label), plain(&describe(side)));
        let fits = columns.is_none_or(|columns| text.chars().count() <= columns);
        writeln!(out, "{}", if fits { text } else { fit(&text) })?;
    }
    for cases in comparison.cases.chunk_by(|a, b| heading(&a.id) == heading(&b.id)) {
        writeln!(out, "\n{}", paint.heading(&fit(&plain(&heading(&cases[0].id)))))?;
        let has_interval = cases.iter().any(|case| case.change.ci90.is_some());
        let cells = if has_interval { intervals } else { ranges };
        let (grid, left_out) = cells(comparison, cases).fitted(cases, paint, columns);
        writeln!(out, "{grid}")?;
        if let (Some(columns), false) = (columns, left_out.is_empty()) {
            let left_out = left_out.join(", ");
            writeln!(
                out,
                "{}",
                fit(&format!("{columns} columns are too few for: {left_out} (--format json has all)"))
            )?;
        }
    }
    writeln!(out)?;
    for (key, why) in &comparison.broken {
        let label = &comparison.new.label;
        writeln!(out, "{}", paint.bad(&fit(&plain(&format!("FAILED only in {label}: {key}: {why}")))))?;
    }
    for lost in &comparison.unmatched {
        let (has, not) = match lost.only {
            Side::Base => (sides[0], sides[1]),
            Side::New => (sides[1], sides[0]),
        };
        let text = format!("only in {}: {} ({}: {})", has.label, lost.key, not.label, lost.why);
        writeln!(out, "{}", fit(&plain(&text)))?;
    }
    for Note { text, .. } in &comparison.notes {
        writeln!(out, "{}", fit(&plain(text)))?;
    }
    writeln!(out, "{}", fit(&plain(&sentence(comparison))))
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
    let (launches, runs) = (side.launches, side.commands);
    let launches = format!("{launches} launch{}", if launches == 1 { "" } else { "es" });
    let runs = if runs > 1 { format!("{runs} runs, ") } else { String::new() };
    let libraries: Vec<&str> = side.libraries.iter().map(String::as_str).collect();
    format!("{} · {runs}{launches} · {}", side.name, libraries.join(", "))
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

/// Titles and cells of a table of cases. The last column is the verdict.
struct Cells {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Cells {
    /// Returns the table, and the titles of the columns that did not fit.
    fn fitted(self, cases: &[CaseComparison], paint: Paint, columns: Option<usize>) -> (String, Vec<String>) {
        let Fitted { titles, rows, left_out } = fitted(self.titles, self.rows, columns);
        let last = titles.len() - 1;
        let mut grid = grid(titles, 0..last);
        for (case, mut row) in cases.iter().zip(rows) {
            // Escape sequences would count in the width of other columns.
            row[last] = match case.verdict {
                Verdict::Better => paint.good(&row[last]),
                Verdict::Worse => paint.bad(&row[last]),
                Verdict::Same | Verdict::Inconclusive(_) => std::mem::take(&mut row[last]),
            };
            grid.add_row(row);
        }
        (grid.trim_fmt(), left_out)
    }
}

/// Returns the table of cases with intervals.
fn intervals(comparison: &Comparison, cases: &[CaseComparison]) -> Cells {
    let [base, new] = side_titles(comparison, cases);
    let titles =
        ["bytes", &base, &new, "time", "90% interval", "finds", "verdict"].map(str::to_owned).to_vec();
    let row = |case: &CaseComparison| {
        vec![
            size(case.id.bytes),
            figure(case.base.median),
            figure(case.new.median),
            percent(case.change.estimate),
            interval(case.change.ci90, percent),
            case.power.map_or(NO_VALUE.into(), |power| finds(power.detectable)),
            verdict_cell(case, comparison.margin),
        ]
    };
    Cells { titles, rows: cases.iter().map(row).collect() }
}

/// Returns the table of cases that have too few launches for an interval.
fn ranges(comparison: &Comparison, cases: &[CaseComparison]) -> Cells {
    let [base, new] = side_titles(comparison, cases);
    let titles = ["bytes", &base, "range", &new, "range", "time", "verdict"].map(str::to_owned).to_vec();
    let row = |case: &CaseComparison| {
        vec![
            size(case.id.bytes),
            figure(case.base.median),
            range(&case.base),
            figure(case.new.median),
            range(&case.new),
            percent(case.change.estimate),
            verdict_cell(case, comparison.margin),
        ]
    };
    Cells { titles, rows: cases.iter().map(row).collect() }
}

fn range(side: &UnitMedians) -> String {
    interval((side.values.len() > 1).then(|| side.range()), figure)
}

/// Formats the smallest detectable difference with two digits.
fn finds(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = usize::from(percent < 10.0);
    if percent >= 1000.0 { ">1000%".into() } else { format!("{percent:.digits$}%") }
}

/// Returns the verdict without its reason, which stands in the summary.
fn verdict_cell(case: &CaseComparison, within: f64) -> String {
    if case.decided_by() == Some(DecidedBy::Instructions)
        && let Some(counted) = &case.instructions
    {
        return match counted.verdict {
            Verdict::Worse => format!("more instructions ({})", percent(counted.change.estimate)),
            Verdict::Better => format!("fewer instructions ({})", percent(counted.change.estimate)),
            Verdict::Same | Verdict::Inconclusive(_) => "same instructions".into(),
        };
    }
    match &case.verdict {
        Verdict::Better => "better".into(),
        Verdict::Worse => "worse".into(),
        Verdict::Same => verdict(&case.verdict, within),
        Verdict::Inconclusive(Reason::SizeUnknown) => "differs".into(),
        Verdict::Inconclusive(_) => "inconclusive".into(),
    }
}
