//! docs/FIDELITY.md: what was compared, how, and a summary of the results.

use std::collections::BTreeMap;

use ombx_toolchain::table::table;

use crate::{
    document::{Circumstances, Compared, by_flavour, of_medians},
    ratio::{Ratio, Verdict, median},
};

/// Headings of the parts that separate runs write.
const OVER_MPI: &str = "## MPI\n";
const SOCKETS: &str = "## Sockets\n";

/// Returns the page with new results over MPI. Its results over sockets are kept.
pub(crate) fn with_mpi(page: &str, compared: &[Compared], about: &Circumstances) -> String {
    let sockets = page.find(SOCKETS).map_or("", |at| &page[at..]);
    format!(
        "{}\n{OVER_MPI}\n{}; {}.\n\n{}\n{}\n{sockets}",
        include_str!("method.md"),
        about.heading(),
        about.libraries.join("; "),
        times(compared),
        instructions(compared)
    )
}

/// Returns the page with new results over sockets. Its results over MPI are kept.
pub(crate) fn with_sockets(page: &str, table: &str, about: &Circumstances) -> String {
    let over_mpi = page.find(OVER_MPI).map_or("", |at| &page[at..]);
    let over_mpi = over_mpi.find(SOCKETS).map_or(over_mpi, |at| &over_mpi[..at]);
    format!("{}\n{over_mpi}{SOCKETS}\n{}.\n\n{table}", include_str!("method.md"), about.heading())
}

/// Comparison of one row in one mode.
struct Line<'a> {
    row: &'a str,
    mode: &'static str,
    ratio: Option<Ratio>,
    verdict: Verdict,
}

/// Returns a table by MPI and family, and the rows that miss their goal or are doubtful.
fn times(compared: &[Compared]) -> String {
    let (mut cells, mut rows) = (Vec::new(), String::new());
    for (flavour, compared) in by_flavour(compared) {
        let mut families: BTreeMap<&str, Vec<Line<'_>>> = BTreeMap::new();
        for one in compared {
            let family = one.row.name.split('.').next().unwrap_or_default();
            families.entry(family).or_default().extend(one.modes().map(|(mode, pairs)| {
                let ratio = of_medians(pairs);
                let verdict = ratio.map_or(Verdict::Unresolved, |ratio| ratio.verdict(one.row.goal));
                Line { row: &one.row.name, mode, ratio, verdict }
            }));
        }
        for (family, lines) in families {
            let medians: Vec<f64> = lines.iter().filter_map(|line| Some(line.ratio?.median)).collect();
            let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
            let most = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let middle = median(&medians).unwrap_or(f64::NAN);
            let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
            let (met, unresolved) = (count(Verdict::Met), count(Verdict::Unresolved));
            let mut line = vec![flavour.to_string(), family.to_owned(), lines.len().to_string()];
            line.push(format!("{middle:.3} ({least:.3} to {most:.3})"));
            line.extend([met, unresolved, lines.len() - met - unresolved].map(|count| count.to_string()));
            cells.push(line);
            for Line { row, mode, ratio, verdict } in lines {
                if let (Some(ratio), false) = (ratio, [Verdict::Met, Verdict::Unresolved].contains(&verdict))
                {
                    rows += &format!("- {flavour}, {row}, {mode}: {ratio}, {verdict}\n");
                }
            }
        }
    }
    let head = ["MPI", "family", "comparisons", "ratio: median (range)", "met", "not resolved", "other"];
    let rows = if rows.is_empty() { "none\n".to_owned() } else { rows };
    format!("{}\nOther comparisons:\n\n{rows}", table(&head, cells))
}

/// Returns how many rows meet the goal of instructions, and those that do not by what is wrong with them.
fn instructions(compared: &[Compared]) -> String {
    let mut text = String::from("## Instructions\n");
    for (flavour, compared) in by_flavour(compared) {
        let counted = compared.iter().filter_map(|one| Some((&one.row.name, one.count.as_ref()?.faults())));
        let counted: Vec<_> = counted.collect();
        let met = counted.iter().filter(|(_, faults)| faults.is_empty()).count();
        text += &format!("\n{flavour}: {met} of {} rows meet the goal.\n", counted.len());
        let mut missed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (row, faults) in counted.iter().filter(|(_, faults)| !faults.is_empty()) {
            missed.entry(faults.join(", ")).or_default().push(row);
        }
        let lines = missed.iter().map(|(fault, rows)| format!("- {fault}: {}\n", rows.join(", ")));
        text.extend(lines);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        callgrind::{Count, Iteration},
        document::tests::compared,
    };

    #[test]
    fn a_part_is_replaced_and_the_other_kept() {
        let about = Circumstances::now(7);
        let page = with_mpi("", &[compared(1.0)], &about);
        assert!(page.starts_with("# Fidelity\n") && page.contains("seed 7"), "{page}");
        let page = with_sockets(&page, "| a table |\n", &about);
        assert!(page.contains("| Open MPI | p2p ") && page.ends_with("| a table |\n"), "{page}");
        let page = with_mpi(&page, &[compared(1.5)], &about);
        assert!(
            page.contains("- Open MPI, p2p.latency, same counts: 1.500 (1.500 to 1.500), MISSED\n"),
            "{page}"
        );
        assert_eq!(page.matches(SOCKETS).count(), 1);
        assert!(page.lines().count() < 90);
    }

    #[test]
    fn rows_with_the_same_fault_share_a_line() {
        let one = || {
            let ombx = Iteration { own: 30.0, ..Iteration::default() };
            Compared { count: Some(Count { reference: Iteration::default(), ombx }), ..compared(1.0) }
        };
        let text = instructions(&[one(), one(), compared(1.0)]);
        assert!(text.contains("Open MPI: 0 of 2 rows meet the goal.\n"), "{text}");
        assert!(text.contains("- 30.0 instructions added, 10 allowed: p2p.latency, p2p.latency\n"), "{text}");
    }
}
