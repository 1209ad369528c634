//! Tables of shares, and their short form for docs/EVIDENCE.md.

use ombx_host::environment;
use ombx_toolchain::{Result, Workspace, evidence};

use crate::line::{Line, Verdict, wilson};

/// What each table shows, at the beginning of the full tables.
const METHOD: &str = include_str!("method.md");

/// Writes the section of a proof in docs/EVIDENCE.md with the date and what was simulated or measured, and its full tables.
pub(crate) fn write(workspace: &Workspace, name: &str, what: &str, short: &str, tables: &str) -> Result<()> {
    let heading = format!("{what}, {}.", environment::timestamp());
    let section = format!("{heading}\n\n{short}");
    evidence::write(workspace, name, &section, &format!("{METHOD}\n{heading}\n\n{tables}"))
}

fn percent(hits: u64, of: u64) -> String {
    if of == 0 { "n/a".into() } else { format!("{:.1}", hits as f64 / of as f64 * 100.0) }
}

pub(crate) fn with_interval(hits: u64, of: u64) -> String {
    if of == 0 {
        return "n/a".into();
    }
    let [low, high] = wilson(hits, of);
    format!("{} ({:.1} to {:.1})", percent(hits, of), low * 100.0, high * 100.0)
}

/// Returns a line that is printed when a model is done.
pub(crate) fn progress(line: &Line) -> String {
    let c = line.coverage;
    format!(
        "{:14} {:24} {} samples, covered {} %, marked {} %, without a mark covered {} %: {}",
        line.model.family,
        line.model.name,
        c.samples / c.rows.max(1),
        percent(c.covered, c.intervals),
        percent(c.marked, c.rows),
        with_interval(c.silent_covered, c.silent),
        line.verdict()
    )
}

/// Returns a line for each model.
pub(crate) fn table(lines: &[Line]) -> String {
    let head = "noise | parameter | rows | samples | covered % | marked % | without a mark, covered % | \
                covered or marked % | ";
    ombx_toolchain::table(head, lines.iter().map(model_row))
}

/// Returns the cells of a model: its noise, the rows, and how many of them are covered and marked.
fn model_row(line: &Line) -> String {
    let c = line.coverage;
    format!(
        "{} | {} | {} | {} | {} | {} | {} | {} | {}",
        line.model.family,
        line.model.name,
        c.rows,
        c.samples / c.rows.max(1),
        percent(c.covered, c.intervals),
        percent(c.marked, c.rows),
        with_interval(c.silent_covered, c.silent),
        percent(c.marked + c.silent_covered, c.rows),
        line.verdict(),
    )
}

/// Returns a line for each family, with the range over its models.
pub(crate) fn families(lines: &[Line]) -> String {
    let head = "noise | models | without a mark, of models not mostly marked: covered % | marked % | \
                covered or marked %";
    ombx_toolchain::table(head, lines.chunk_by(|a, b| a.model.family == b.model.family).map(family_row))
}

/// Returns the cells of a family of noise, with the range over its models.
fn family_row(family: &[Line]) -> String {
    let share = |hits: u64, of: u64| 100.0 * hits as f64 / of as f64;
    format!(
        "{} | {} | {} | {} | {}",
        family[0].model.family,
        family.len(),
        range(family, |line| (line.verdict() != Verdict::Marked)
            .then(|| share(line.coverage.silent_covered, line.coverage.silent))),
        range(family, |line| Some(share(line.coverage.marked, line.coverage.rows))),
        range(family, |line| Some(share(
            line.coverage.marked + line.coverage.silent_covered,
            line.coverage.rows
        ))),
    )
}

/// Returns the least and the most of a figure over the models that have it.
fn range(family: &[Line], figure: impl Fn(&Line) -> Option<f64>) -> String {
    let values: Vec<f64> = family.iter().filter_map(figure).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() { "n/a".into() } else { format!("{least:.1} to {most:.1}") }
}
