//! Tables, and docs/COVERAGE.md.

use std::fs;

use ombx_toolchain::{
    failure::{Failure, Result},
    workspace::Workspace,
};

use crate::line::{Line, Verdict, wilson};

/// The page of all results.
pub(crate) const PAGE: &str = "docs/COVERAGE.md";
/// Line before the table of METHODOLOGY.md.
pub(crate) const BEGINNING: &str = "<!-- Written by `cargo xtask coverage --write`. -->\n";
/// Line before the results of invocations in the page.
pub(crate) const INVOCATIONS: &str = "<!-- Written by `cargo xtask coverage invocations --write`. -->\n";
/// Line before the results of simulated rules in the page.
pub(crate) const RULES: &str = "<!-- Written by `cargo xtask coverage rules --write`. -->\n";
/// Line after a part of a document that a command writes.
pub(crate) const END: &str = "<!-- End of what is written. -->\n";

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

const HEAD: &str = "| noise | parameter | rows | samples | covered % | marked % | without a mark, covered % | covered or marked % | |\n\
    |---|---|---|---|---|---|---|---|---|\n";

/// Returns a line for each model.
pub(crate) fn table(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let c = line.coverage;
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
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
    };
    HEAD.chars().chain(lines.iter().map(line).collect::<String>().chars()).collect()
}

/// Returns a line for each family, with the range over its models, for METHODOLOGY.md.
pub(crate) fn families(lines: &[Line]) -> String {
    let mut text = String::from(
        "| noise | models | without a mark, of models not mostly marked: covered % | marked % | covered or marked % |\n|---|---|---|---|---|\n",
    );
    for family in lines.chunk_by(|a, b| a.model.family == b.model.family) {
        let range = |of: &dyn Fn(&Line) -> Option<f64>| {
            let values: Vec<f64> = family.iter().filter_map(of).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if values.is_empty() { "n/a".into() } else { format!("{least:.1} to {most:.1}") }
        };
        let share = |hits: u64, of: u64| 100.0 * hits as f64 / of as f64;
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            family[0].model.family,
            family.len(),
            range(&|line| (line.verdict() != Verdict::Marked)
                .then(|| share(line.coverage.silent_covered, line.coverage.silent))),
            range(&|line| Some(share(line.coverage.marked, line.coverage.rows))),
            range(&|line| Some(share(
                line.coverage.marked + line.coverage.silent_covered,
                line.coverage.rows
            ))),
        );
    }
    text
}

/// Returns docs/COVERAGE.md. The parts about rules and invocations are as other commands wrote them.
pub(crate) fn page(lines: &[Line], simulated: &str, [rules, invocations]: &[String; 2], rows: u64) -> String {
    let date = ombx_core::system::environment::timestamp();
    format!(
        include_str!("method.md"),
        rows = rows,
        date = date,
        simulated = simulated,
        table = table(lines),
        beginning = INVOCATIONS,
        invocations = invocations,
        of_rules = RULES,
        rules = rules,
        end = END
    )
}

/// Replaces the part of a document that begins with the line `beginning`.
pub(crate) fn replace(workspace: &Workspace, document: &str, beginning: &str, part: &str) -> Result<()> {
    let path = workspace.root.join(document);
    let text = fs::read_to_string(&path).map_err(Failure::file(path))?;
    let missing = || Failure::Missing(format!("{document} has no line {beginning}"));
    let [before, _, after] = split(&text, beginning).ok_or_else(missing)?;
    workspace.write(document, &format!("{before}{beginning}{part}{END}{after}"))
}

/// Returns the text before, in and after the part that begins with a line; `None` if there is no such part.
pub(crate) fn split<'t>(text: &'t str, beginning: &str) -> Option<[&'t str; 3]> {
    let (before, rest) = text.split_once(beginning)?;
    let (part, after) = rest.split_once(END)?;
    Some([before, part, after])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_lines() {
        let text = format!(
            "a
{BEGINNING}old
{END}b
"
        );
        assert_eq!(
            split(&text, BEGINNING),
            Some([
                "a
", "old
", "b
"
            ])
        );
        assert_eq!(split("a", BEGINNING), None);
    }
}
