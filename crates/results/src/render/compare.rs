//! A comparison for people and for programs.

mod json;

use std::io::{Result, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, presets};

pub use self::json::json;
use super::{
    Paint, plain,
    table::{figure, title},
};
use crate::compare::{Compared, Comparison, Note, Side, Subject, Verdict, Which};
use ombx_core::unit::Bytes;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const BOLD: Style = Style::new().bold();
/// Columns of figures, which stand to the right; the verdict follows.
const FIGURES: usize = 6;

/// Writes a comparison as tables, one for each benchmark and choice of axes, and what there is to say beside them.
pub fn table(out: &mut dyn Write, comparison: &Comparison, paint: Paint) -> Result<()> {
    for (name, side) in [("base", &comparison.base), ("new ", &comparison.new)] {
        writeln!(out, "{name}  {}", plain(&told(side)))?;
    }
    for cases in comparison.cases.chunk_by(|a, b| heading(&a.subject) == heading(&b.subject)) {
        writeln!(out, "\n{}", paint.with(BOLD, &plain(&heading(&cases[0].subject))))?;
        writeln!(out, "{}", grid(cases, paint))?;
    }
    writeln!(out, "\n{}", summary(comparison))?;
    for (key, why) in &comparison.broken {
        writeln!(out, "  {}", paint.with(BAD, &plain(&format!("FAILED on the new side: {key}: {why}"))))?;
    }
    for lost in &comparison.unmatched {
        let (has, not) = match lost.only {
            Which::Base => ("base", "new"),
            Which::New => ("new", "base"),
        };
        writeln!(out, "  {}", plain(&format!("only in {has}: {} ({not}: {})", lost.key, lost.why)))?;
    }
    for Note { code, text } in &comparison.notes {
        writeln!(out, "  {}: {}", code.replace('_', " "), plain(text))?;
    }
    Ok(())
}

/// One line: how many cases there are of each verdict.
pub fn summary(comparison: &Comparison) -> String {
    let count = |name: &str| comparison.cases.iter().filter(|case| case.verdict.name() == name).count();
    let cases = comparison.cases.len();
    let plural = if cases == 1 { "" } else { "s" };
    let (worse, better, open) = (count("worse"), count("better"), count("unresolved"));
    format!("{cases} case{plural}: {worse} worse, {better} better, {open} unresolved")
}

/// A relative difference as people write it: `+10.1%`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() >= 1000.0 { format!("{percent:+.0}%") } else { format!("{percent:+.1}%") }
}

fn told(side: &Side) -> String {
    let launches = side.runs.len();
    let plural = if launches == 1 { "" } else { "es" };
    let libraries: Vec<&str> = side.libraries.iter().map(String::as_str).collect();
    format!("{} · {launches} launch{plural} · {}", side.name, libraries.join(", "))
}

fn heading(subject: &Subject) -> String {
    title(&subject.bench, &subject.axes, subject.depth, subject.pairs)
}

fn grid(cases: &[Compared], paint: Paint) -> String {
    let mut grid = comfy_table::Table::new();
    grid.load_style(presets::NOTHING);
    let unit = cases[0].subject.unit;
    let head =
        ["bytes", &format!("base {unit}"), &format!("new {unit}"), "change", "95% interval", "p", "verdict"];
    grid.set_header(head.map(str::to_owned));
    for case in cases {
        let interval = case.change.ci95.map(|[low, high]| format!("{} .. {}", percent(low), percent(high)));
        let verdict = match &case.verdict {
            Verdict::Better => paint.with(GOOD, "better"),
            Verdict::Worse => paint.with(BAD, "worse"),
            Verdict::Unresolved(why) => format!("- {}", plain(why)),
        };
        grid.add_row([
            case.subject.bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string()),
            figure(case.base.median),
            figure(case.new.median),
            percent(case.change.median),
            interval.unwrap_or_else(|| "n/a".into()),
            case.evidence.p_adjusted.map_or_else(|| "n/a".into(), probability),
            verdict,
        ]);
    }
    for column in grid.column_iter_mut().take(FIGURES) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid.trim_fmt()
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format!("{p:.4}") }
}
