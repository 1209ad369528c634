//! Results of all cases: the full table, and its summary for docs/EVIDENCE.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ombx_host::environment;
use ombx_toolchain::{Flavour, table};

use crate::{
    case::{Case, Place},
    judge::Verdict,
};

/// Result of one case with one MPI.
pub(crate) struct Line {
    fault: String,
    place: Place,
    subject: String,
    flavour: Flavour,
    verdict: Verdict,
}

impl Line {
    pub(crate) fn new(case: &Case, flavour: Flavour, verdict: Verdict) -> Self {
        let (fault, subject) = (case.fault.clone(), case.subject.clone());
        Self { fault, place: case.place, subject, flavour, verdict }
    }

    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Wrong(_))
    }

    fn shown(&self) -> String {
        let (verdict, outcome) = match &self.verdict {
            Verdict::Right(remark) => ("right", remark.clone()),
            Verdict::Wrong(why) => ("WRONG", why.join("; ")),
            Verdict::Skipped(why) => ("skipped", why.clone()),
        };
        let Self { fault, place, subject, flavour, .. } = self;
        format!("{fault} | {place} | {subject} | {flavour} | {verdict} | {outcome}")
    }
}

/// Returns a table with a line for each case.
pub(crate) fn full(lines: &[Line]) -> String {
    table("fault | place | benchmark | MPI | verdict | outcome", lines.iter().map(Line::shown))
}

/// Counts of verdicts: right, wrong, skipped.
fn counts<'a>(lines: impl Iterator<Item = &'a Line>) -> [usize; 3] {
    let mut counts = [0; 3];
    for line in lines {
        counts[match line.verdict {
            Verdict::Right(_) => 0,
            Verdict::Wrong(_) => 1,
            Verdict::Skipped(_) => 2,
        }] += 1;
    }
    counts
}

/// Returns a sentence with the number of cases, their time and their verdicts.
pub(crate) fn sums(lines: &[Line], took: Duration) -> String {
    let run = lines.iter().filter(|line| !matches!(line.verdict, Verdict::Skipped(_)));
    let distinct: BTreeSet<(&str, Place)> = run.map(|line| (line.fault.as_str(), line.place)).collect();
    let [right, wrong, skipped] = counts(lines.iter());
    format!(
        "{} cases in {:.0} s, {} of them distinct in fault and place: {right} right, {wrong} wrong, {skipped} skipped",
        lines.len(),
        took.as_secs_f64(),
        distinct.len(),
    )
}

/// Returns a line for each place and MPI.
fn by_place(lines: &[Line]) -> String {
    let mut places: BTreeMap<(Place, &str), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        places.entry((line.place, line.flavour.key())).or_default().push(line);
    }
    let head = "place | MPI | cases | different faults | right | wrong | skipped";
    table(head, places.values().map(|lines| row_of(lines)))
}

/// Returns the row of cases with the same place and MPI.
fn row_of(lines: &[&Line]) -> String {
    let faults: BTreeSet<&str> = lines.iter().map(|line| line.fault.as_str()).collect();
    let numbers = [lines.len(), faults.len()].into_iter().chain(counts(lines.iter().copied()));
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("{} | {} | {}", lines[0].place, lines[0].flavour, numbers.join(" | "))
}

/// Returns the section of docs/EVIDENCE.md: counts, wrong cases and reasons of skipped cases; and the file with all cases.
pub(crate) fn pages(lines: &[Line], versions: &[String], sums: &str) -> [String; 2] {
    let wrong = lines
        .iter()
        .filter(|line| line.is_wrong())
        .map(|line| format!("- {}\n", line.shown().replacen(" | ", ", ", 5)));
    let wrong: String = wrong.collect();
    let wrong = if wrong.is_empty() { "None.\n".to_owned() } else { wrong };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        if let Verdict::Skipped(why) = &line.verdict {
            *reasons.entry(why).or_default() += 1;
        }
    }
    let skipped: String = reasons.iter().map(|(why, count)| format!("- {why}: {count}\n")).collect();
    let date = environment::timestamp();
    let date = date.get(..10).unwrap_or_default();
    let short = format!(
        "{date}, {}. {sums}.\n\nWrong cases:\n\n{wrong}\nSkipped cases:\n\n{}",
        versions.join(" and "),
        if skipped.is_empty() { "None.\n" } else { &skipped },
    );
    let tables = format!("# Faults\n\n{short}\n{}\n{}", by_place(lines), full(lines));
    [short, tables]
}
