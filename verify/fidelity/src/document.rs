//! Tables of the comparison with C, and their short form for docs/EVIDENCE.md.

use std::collections::BTreeMap;

use ombx_host::environment;
use ombx_record::{stats::median, unit::Bytes};
use ombx_toolchain::{Flavour, machine, table};

use crate::{
    comparison::{Comparison, Row},
    ratio::Verdict,
};

/// How each figure is measured, at the beginning of the full tables.
const METHOD: &str = include_str!("method.md");

/// Returns date, machine and seed of a measurement that begins.
pub(crate) fn circumstances(seed: u64) -> String {
    format!("{} on {}; seed {seed}", environment::timestamp(), machine::now())
}

/// Returns the circumstances of a measurement and its libraries in one sentence.
pub(crate) fn heading(circumstances: &str, libraries: &[String]) -> String {
    libraries.iter().fold(circumstances.to_owned(), |text, library| text + "; " + library) + "."
}

/// Returns the file with all tables of a measurement.
pub(crate) fn full(heading: &str, tables: &str) -> String {
    format!("{METHOD}\n{heading}\n\n{tables}")
}

/// Returns the section of docs/EVIDENCE.md: a line for each family, and the cases that did not meet their goal.
pub(crate) fn section(heading: &str, comparisons: &[Comparison<'_>]) -> String {
    let unmet: Vec<String> = comparisons.iter().flat_map(unmet).collect();
    let unmet = if unmet.is_empty() { "All cases met their goal.\n".to_owned() } else { unmet.concat() };
    format!("{heading}\n\n{}\n{unmet}", families(comparisons))
}

/// Returns a line for each case that did not meet its goal.
fn unmet<'c>(one: &'c Comparison<'_>) -> impl Iterator<Item = String> + 'c {
    let unmet = one.rows.iter().filter(|row| row.skipped().is_none() && row.verdict() != Verdict::Met);
    unmet.map(|row| {
        let ratio = row.ratio().map_or("n/a".into(), |ratio| ratio.to_string());
        let (size, goal) = (Bytes(row.line.bytes), row.line.goal);
        format!(
            "- {}, {} at {size}: {ratio}, goal {goal:.2}: {}\n",
            one.paired.mpi.flavour,
            row.line.row,
            row.verdict()
        )
    })
}

/// Returns a line for each family.
fn families(comparisons: &[Comparison<'_>]) -> String {
    let head = "MPI | family | cases | ratio: median (range) | met | above | missed | below | not resolved";
    table(head, comparisons.iter().flat_map(summary))
}

/// Returns a line for each family, and a table for each MPI with a line for each case.
pub(crate) fn times(comparisons: &[Comparison<'_>]) -> String {
    let mut text = families(comparisons);
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

/// Returns the lines of a summary by family.
fn summary(one: &Comparison<'_>) -> Vec<String> {
    let mut families: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in one.rows.iter().filter(|row| row.skipped().is_none()) {
        families.entry(row.line.row.split('.').next().unwrap_or_default()).or_default().push(row);
    }
    let flavour = one.paired.mpi.flavour;
    families.into_iter().map(|(family, rows)| family_line(flavour, family, &rows)).collect()
}

/// Returns the line of a family with one MPI.
fn family_line(flavour: Flavour, family: &str, rows: &[&Row]) -> String {
    let medians: Vec<f64> = rows.iter().filter_map(|row| Some(row.ratio()?.median)).collect();
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let most = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let middle = median(&medians).unwrap_or(f64::NAN);
    let count = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count().to_string();
    let verdicts = [Verdict::Met, Verdict::Doubtful, Verdict::Missed, Verdict::Below, Verdict::Unresolved];
    let (cases, counts) = (rows.len(), verdicts.map(count).join(" | "));
    format!("{flavour} | {family} | {cases} | {middle:.3} ({least:.3} to {most:.3}) | {counts}")
}

/// Returns a line for each case: size, messages in flight, time, ratio, goal and verdict.
fn cases(rows: &[Row]) -> String {
    let head = "case | size | ombx ns | ratio (95 % interval) | kinds of windows | goal | verdict";
    table(head, rows.iter().filter(|row| row.skipped().is_none()).map(case_line))
}

/// Returns the line of a case.
fn case_line(row: &Row) -> String {
    let size = Bytes(row.line.bytes);
    format!(
        "{} | {} | {} | {} | {} | {:.2} | {}",
        row.line.row,
        if row.line.depth > 1 { format!("{} x {size}", row.line.depth) } else { size.to_string() },
        row.ombx_ns().map_or("n/a".into(), |ns| format!("{ns:.0}")),
        row.ratio().map_or("n/a".into(), |ratio| ratio.to_string()),
        row.of_windows().map_or_else(String::new, |[least, most]| format!("{least:.3} to {most:.3}")),
        row.line.goal,
        row.verdict(),
    )
}
