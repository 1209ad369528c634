//! docs/FIDELITY.md: the method, a line for each case, instructions, and sockets.

use std::{collections::BTreeMap, fs};

use ombx_core::unit::Bytes;
use ombx_toolchain::{
    failure::{Failure, Result},
    machine::Machine,
    table::table,
    workspace::Workspace,
};

use crate::{
    comparison::{Comparison, Row},
    ratio::Verdict,
};

const DOCUMENT: &str = "docs/FIDELITY.md";

/// Headings of the parts that separate runs write.
const PARTS: [&str; 4] = ["## From outside\n", "## MPI\n", "## Instructions\n", "## Sockets\n"];

/// Circumstances of a measurement.
#[derive(Debug, Default)]
pub(crate) struct Circumstances {
    /// Start of the first launch.
    pub(crate) started: String,
    pub(crate) machine: Machine,
    pub(crate) seed: u64,
}

impl Circumstances {
    /// Returns the circumstances before the first launch.
    pub(crate) fn now(seed: u64) -> Self {
        Self { started: ombx_core::system::environment::timestamp(), machine: Machine::now(), seed }
    }

    /// Returns date, machine, seed and libraries in one sentence.
    pub(crate) fn heading<'a>(&self, libraries: impl Iterator<Item = &'a str>) -> String {
        let libraries: String = libraries.map(|library| format!("; {library}")).collect();
        format!("{} on {}; seed {}{libraries}.", self.started, self.machine, self.seed)
    }
}

/// Returns the page with one part replaced.
fn with(page: &str, part: usize, text: &str) -> String {
    let kept = |at: usize| {
        let Some(start) = page.find(PARTS[at]) else { return PARTS[at].to_owned() };
        let rest = &page[start..];
        let end =
            PARTS.iter().filter_map(|other| rest[1..].find(other)).min().map_or(rest.len(), |end| end + 1);
        rest[..end].trim_end().to_owned() + "\n"
    };
    let parts = (0..PARTS.len()).map(|at| match at == part {
        true => format!("{}\n{}\n", PARTS[at], text.trim_end()),
        false => kept(at),
    });
    format!("{}\n{}", include_str!("method.md"), parts.collect::<Vec<_>>().join("\n"))
}

/// Returns the page with new times of separate programs.
pub(crate) fn with_outside(page: &str, text: &str) -> String {
    with(page, 0, text)
}

/// Returns the page with new times over MPI.
pub(crate) fn with_times(page: &str, text: &str) -> String {
    with(page, 1, text)
}

/// Returns the page with new instructions.
pub(crate) fn with_instructions(page: &str, text: &str) -> String {
    with(page, 2, text)
}

/// Returns the page with new results over sockets.
pub(crate) fn with_sockets(page: &str, text: &str) -> String {
    with(page, 3, text)
}

/// Returns a summary, and a table for each MPI with a line for each case.
pub(crate) fn times(comparisons: &[Comparison<'_>]) -> String {
    let summary: Vec<Vec<String>> = comparisons.iter().flat_map(summary).collect();
    let head = [
        "MPI",
        "family",
        "cases",
        "ratio: median (range)",
        "met",
        "above",
        "missed",
        "below",
        "not resolved",
    ];
    let mut text = table(&head, summary);
    for one in comparisons {
        text += &format!("\n### {}\n\n{}", one.paired.mpi.flavour, cases(&one.rows));
        let skipped: BTreeMap<&str, &str> =
            one.rows.iter().filter_map(|row| Some((row.line.row.as_str(), row.skipped()?))).collect();
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        skipped.into_iter().for_each(|(row, why)| reasons.entry(why).or_default().push(row));
        if !reasons.is_empty() {
            text += "\nNot with this MPI:\n\n";
            text.extend(reasons.into_iter().map(|(why, rows)| format!("- {why}: {}\n", rows.join(", "))));
        }
    }
    text
}

/// Returns the cells of a summary by family.
fn summary(one: &Comparison<'_>) -> Vec<Vec<String>> {
    let mut families: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in one.rows.iter().filter(|row| row.skipped().is_none()) {
        families.entry(row.line.row.split('.').next().unwrap_or_default()).or_default().push(row);
    }
    let line = |(family, rows): (&str, Vec<&Row>)| {
        let medians: Vec<f64> = rows.iter().filter_map(|row| Some(row.ratio()?.median)).collect();
        let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let most = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = crate::ratio::median(&medians).unwrap_or(f64::NAN);
        let count = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count().to_string();
        let mut cells = vec![one.paired.mpi.flavour.to_string(), family.to_owned(), rows.len().to_string()];
        cells.push(format!("{middle:.3} ({least:.3} to {most:.3})"));
        let verdicts =
            [Verdict::Met, Verdict::Doubtful, Verdict::Missed, Verdict::Below, Verdict::Unresolved];
        cells.extend(verdicts.map(count));
        cells
    };
    families.into_iter().map(line).collect()
}

/// Returns a line for each case: size, messages in flight, time, ratio, goal and verdict.
fn cases(rows: &[Row]) -> String {
    let head = ["case", "size", "ombx ns", "ratio (95 % interval)", "kinds of windows", "goal", "verdict"];
    let line = |row: &Row| {
        let size = Bytes(row.line.bytes);
        vec![
            row.line.row.clone(),
            if row.line.depth > 1 { format!("{} x {size}", row.line.depth) } else { size.to_string() },
            row.ombx_ns().map_or("n/a".into(), |ns| format!("{ns:.0}")),
            row.ratio().map_or("n/a".into(), |ratio| ratio.to_string()),
            row.of_windows().map_or_else(String::new, |[least, most]| format!("{least:.3} to {most:.3}")),
            format!("{:.2}", row.line.goal),
            row.verdict().to_string(),
        ]
    };
    table(&head, rows.iter().filter(|row| row.skipped().is_none()).map(line).collect())
}

/// Changes docs/FIDELITY.md.
pub(crate) fn renew(workspace: &Workspace, change: impl FnOnce(&str) -> String) -> Result<()> {
    let path = workspace.root.join(DOCUMENT);
    let page = fs::read_to_string(&path).map_err(Failure::file(&path))?;
    workspace.write(DOCUMENT, &change(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_replaced_and_the_others_kept() {
        let page = with_times("", "one");
        assert!(page.starts_with("# Fidelity\n"), "{page}");
        let page = with_sockets(&with_instructions(&page, "two"), "three\n");
        let page = with_times(&page, "four");
        assert!(!page.contains("one\n") && page.ends_with("## Sockets\n\nthree\n"), "{page}");
        assert!(page.contains("## MPI\n\nfour\n\n## Instructions\n\ntwo\n\n## Sockets"), "{page}");
    }
}
