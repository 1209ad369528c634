//! Comparison as text tables.

mod json;

use std::io::{Result, Write};

pub use self::json::json;
use super::{
    Paint,
    grid::{NO_VALUE, grid, interval, size},
    plain,
    table::title,
};
use crate::{
    compare::{CaseComparison, CaseId, Comparison, Note, Side, SideInfo, Verdict},
    number::figure,
};

/// Writes a comparison: one table per benchmark and choice of axes, then cases of one side and notes.
pub fn table(out: &mut dyn Write, comparison: &Comparison, paint: Paint) -> Result<()> {
    for (name, side) in [("base", &comparison.base), ("new ", &comparison.new)] {
        writeln!(out, "{name}  {}", plain(&describe(side)))?;
    }
    for cases in comparison.cases.chunk_by(|a, b| heading(&a.id) == heading(&b.id)) {
        writeln!(out, "\n{}", paint.heading(&plain(&heading(&cases[0].id))))?;
        writeln!(out, "{}", cases_grid(cases, paint))?;
    }
    writeln!(out, "\n{}", summary(comparison))?;
    for (key, why) in &comparison.broken {
        writeln!(out, "  {}", paint.bad(&plain(&format!("FAILED on the new side: {key}: {why}"))))?;
    }
    for lost in &comparison.unmatched {
        let (has, not) = match lost.only {
            Side::Base => ("base", "new"),
            Side::New => ("new", "base"),
        };
        writeln!(out, "  {}", plain(&format!("only in {has}: {} ({not}: {})", lost.key, lost.why)))?;
    }
    for Note { code, text } in &comparison.notes {
        writeln!(out, "  {}: {}", code.replace('_', " "), plain(text))?;
    }
    Ok(())
}

/// Returns one line with the number of cases of each verdict.
pub fn summary(comparison: &Comparison) -> String {
    let cases = comparison.cases.len();
    let plural = if cases == 1 { "" } else { "s" };
    let [worse, better, unresolved] = comparison.verdict_counts();
    format!("{cases} case{plural}: {worse} worse, {better} better, {unresolved} unresolved")
}

/// Formats a fraction as a signed percentage: `+10.1%`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() >= 1000.0 { format!("{percent:+.0}%") } else { format!("{percent:+.1}%") }
}

fn describe(side: &SideInfo) -> String {
    let launches = side.runs.len();
    let plural = if launches == 1 { "" } else { "es" };
    let libraries: Vec<&str> = side.libraries.iter().map(String::as_str).collect();
    format!("{} · {launches} launch{plural} · {}", side.name, libraries.join(", "))
}

fn heading(id: &CaseId) -> String {
    title(&id.bench, &id.axes, id.depth, id.pairs)
}

fn cases_grid(cases: &[CaseComparison], paint: Paint) -> String {
    let unit = cases[0].id.unit;
    let titles =
        ["bytes", &format!("base {unit}"), &format!("new {unit}"), "change", "95% interval", "p", "verdict"];
    let mut grid = grid(titles.map(str::to_owned), 0..6);
    for case in cases {
        grid.add_row([
            size(case.id.bytes),
            figure(case.base.median),
            figure(case.new.median),
            percent(case.change.median),
            interval(case.change.ci95, percent),
            probability(case.evidence.p_adjusted),
            match &case.verdict {
                Verdict::Better => paint.good("better"),
                Verdict::Worse => paint.bad("worse"),
                Verdict::Unresolved(why) => format!("- {}", plain(why)),
            },
        ]);
    }
    grid.trim_fmt()
}

/// Formats a p value with four decimals.
pub fn probability(p: Option<f64>) -> String {
    match p {
        None => NO_VALUE.into(),
        Some(p) if p < 0.0001 => "<0.0001".into(),
        Some(p) => format!("{p:.4}"),
    }
}
