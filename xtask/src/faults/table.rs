//! The table, as printed and as kept in docs/FAULTS.md.

use std::{collections::BTreeSet, time::Duration};

use comfy_table::{Table, TableStyle, presets};
use ombx_core::system::environment;

use super::{case::Case, judge::Verdict};
use crate::mpi::Flavour;

/// One case on one MPI.
pub(super) struct Line {
    fault: String,
    place: String,
    subject: String,
    flavour: Flavour,
    verdict: Verdict,
}

const HEADER: [&str; 6] = ["fault", "place", "benchmark", "MPI", "verdict", "outcome"];

impl Line {
    pub(super) fn of(case: &Case, flavour: Flavour, verdict: Verdict) -> Self {
        let (fault, place, subject) = (case.fault.clone(), case.place.to_string(), case.subject.clone());
        Self { fault, place, subject, flavour, verdict }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Wrong(_))
    }

    fn cells(&self) -> [String; 6] {
        let (verdict, outcome) = match &self.verdict {
            Verdict::Right(remark) => ("right", remark.clone()),
            Verdict::Wrong(why) => ("WRONG", why.join("; ")),
            Verdict::Skipped(why) => ("skipped", why.clone()),
        };
        let Self { fault, place, subject, flavour, .. } = self;
        [fault.clone(), place.clone(), subject.clone(), flavour.to_string(), verdict.to_owned(), outcome]
    }
}

pub(super) fn shown(lines: &[Line]) -> String {
    grid(lines, presets::NOTHING)
}

fn grid(lines: &[Line], preset: TableStyle) -> String {
    let mut table = Table::new();
    table.load_style(preset).set_header(HEADER);
    for line in lines {
        table.add_row(line.cells());
    }
    table.trim_fmt()
}

/// How many cases there are, and how they ended.
pub(super) fn sums(lines: &[Line], took: Duration) -> String {
    let count = |of: fn(&Verdict) -> bool| lines.iter().filter(|line| of(&line.verdict)).count();
    let run = lines.iter().filter(|line| !matches!(line.verdict, Verdict::Skipped(_)));
    let places: BTreeSet<(&str, &str)> = run.map(|line| (line.fault.as_str(), line.place.as_str())).collect();
    format!(
        "{} cases in {:.0} s, {} of them distinct in fault and place: {} right, {} wrong, {} skipped",
        lines.len(),
        took.as_secs_f64(),
        places.len(),
        count(|v| matches!(v, Verdict::Right(_))),
        count(|v| matches!(v, Verdict::Wrong(_))),
        count(|v| matches!(v, Verdict::Skipped(_))),
    )
}

/// The page of the documentation.
pub(super) fn page(lines: &[Line], versions: &[String], sums: &str) -> String {
    format!(
        "# Faults\n\nWritten by `cargo xtask faults --write` on {}, with {}. What a line means: `xtask/src/faults.rs`.\n\n\
         {sums}.\n\n{}\n",
        environment::timestamp().get(..10).unwrap_or_default(),
        versions.join(" and "),
        grid(lines, presets::ASCII_MARKDOWN)
    )
}
