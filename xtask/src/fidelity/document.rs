//! The tables, as printed and as kept in docs/FIDELITY.md.

use std::fs;

use super::{
    callgrind::Count,
    ratio::{Launch, Ratio, Verdict, median},
    row::Row,
};
use crate::mpi::Flavour;

/// A launch of each program, measured alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) reference: Launch,
    pub(crate) ombx: Launch,
}

/// Launches close to each other in time and in random order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// With the same counts.
    pub(crate) same: Pair,
    /// With what ombx does by itself, and chunks as long in C.
    pub(crate) default: Pair,
}

/// All that was measured of a row with one MPI.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) flavour: Flavour,
    pub(crate) row: &'static Row,
    pub(crate) groups: Vec<Group>,
    pub(crate) count: Option<Count>,
}

/// Under which circumstances.
#[derive(Debug, Default)]
pub(crate) struct Circumstances {
    /// When the first launch started.
    pub(crate) started: String,
    /// What each library says of itself.
    pub(crate) libraries: Vec<String>,
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    /// Of one minute, before the first launch.
    pub(crate) load: String,
    pub(crate) seed: u64,
}

impl Compared {
    /// The pairs of both modes.
    fn modes(&self) -> [(&'static str, Vec<Pair>); 2] {
        [
            ("same counts", self.groups.iter().map(|group| group.same).collect()),
            ("default", self.groups.iter().map(|group| group.default).collect()),
        ]
    }

    /// Whether a goal is certainly missed.
    pub(crate) fn missed(&self) -> bool {
        let missed = |ratio: Ratio| ratio.verdict(self.row.goal) == Verdict::Missed;
        self.modes().iter().any(|(_, pairs)| ratio(pairs, |launch| launch.median).is_some_and(missed))
            || self.count.as_ref().is_some_and(|count| !count.faults().is_empty())
    }

    fn line(&self, mode: &str, pairs: &[Pair]) -> Vec<String> {
        let ombx: Vec<f64> = pairs.iter().map(|pair| pair.ombx.median).collect();
        let reference: Vec<f64> = pairs.iter().map(|pair| pair.reference.median).collect();
        let middle = |values: &[f64]| median(values).map_or("n/a".into(), |ns| format!("{ns:.1}"));
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let plain = |ratio: Option<Ratio>| ratio.map_or("n/a".into(), |ratio| format!("{:.3}", ratio.median));
        let decides = ratio(pairs, |launch| launch.median);
        vec![
            self.flavour.to_string(),
            self.row.name.to_owned(),
            mode.to_owned(),
            middle(&reference),
            middle(&ombx),
            decides.map_or("n/a".into(), |ratio| ratio.to_string()),
            plain(ratio(pairs, |launch| launch.quiet)),
            plain(ratio(pairs, |launch| launch.whole)),
            format!("{:.3}", least(&ombx) / least(&reference)),
            pairs.len().to_string(),
            decides.map_or(Verdict::Unresolved, |ratio| ratio.verdict(self.row.goal)).to_string(),
        ]
    }
}

fn ratio(pairs: &[Pair], figure: impl Fn(&Launch) -> f64) -> Option<Ratio> {
    Ratio::of(&pairs.iter().map(|pair| (figure(&pair.ombx), figure(&pair.reference))).collect::<Vec<_>>())
}

/// Times and ratios.
pub(crate) fn times(compared: &[Compared]) -> String {
    let lines = |row: &Compared| row.modes().map(|(mode, pairs)| row.line(mode, &pairs));
    let head = [
        "MPI",
        "row",
        "ombx",
        "C ns",
        "ombx ns",
        "ratio (95 % interval)",
        "of quiet",
        "of whole",
        "of minima",
        "pairs",
        "verdict",
    ];
    table(&head, compared.iter().flat_map(lines).collect())
}

/// Instructions; nothing where none were counted.
pub(crate) fn instructions(compared: &[Compared]) -> Option<String> {
    let head = ["MPI", "row", "C", "ombx", "added", "calls of an iteration", "verdict"];
    let lines: Vec<Vec<String>> = compared
        .iter()
        .filter_map(|compared| {
            let count = compared.count.as_ref()?;
            let numbers =
                [count.reference.own, count.ombx.own, count.added()].map(|number| format!("{number:.1}"));
            let names = [compared.flavour.to_string(), compared.row.name.to_owned()];
            Some(names.into_iter().chain(numbers).chain([count.calls(), count.to_string()]).collect())
        })
        .collect();
    (!lines.is_empty()).then(|| table(&head, lines))
}

/// An aligned table in Markdown, readable as it is.
fn table(head: &[&str], lines: Vec<Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|word| (*word).to_owned()).collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([&head]).map(|line| line[column].chars().count());
        cells.max().unwrap_or(0).max(3)
    };
    let rule: Vec<String> = (0..head.len()).map(|column| "-".repeat(width(column))).collect();
    let show = |line: &Vec<String>| {
        let cells = line.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    [head.clone(), rule].iter().chain(&lines).map(show).collect()
}

/// The whole of docs/FIDELITY.md.
pub(crate) fn page(compared: &[Compared], about: &Circumstances) -> String {
    let libraries = about.libraries.join("; ");
    let Circumstances { started, cpu, cpus, load, seed, .. } = about;
    let counted = instructions(compared).unwrap_or_else(|| {
        "Not counted in this run: `cargo xtask fidelity --callgrind` does, where valgrind is installed.\n"
            .into()
    });
    let method = include_str!("method.md");
    format!(
        "# Fidelity\n\n<!-- Written by `cargo xtask fidelity --callgrind --write`; do not edit. -->\n\n{method}\n\
         ## Measured\n\n\
         {started} on {cpus} CPUs ({cpu}); {libraries}; load average before: {load}; seed {seed}.\n\n\
         {}\n## Instructions\n\n{counted}",
        times(compared)
    )
}

/// What the machine says of itself.
pub(crate) fn machine(seed: u64) -> Circumstances {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    Circumstances {
        cpu: model.map_or("unknown model", |(_, name)| name.trim()).to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        load: load.split_whitespace().next().unwrap_or("unknown").to_owned(),
        seed,
        ..Circumstances::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::row::ROWS;

    fn compared(slowdown: f64) -> Compared {
        let groups = (0..7).map(|i| {
            let reference = Launch { median: 200.0 + f64::from(i), quiet: 190.0, whole: 220.0 };
            let slower = |by: f64| Launch { median: reference.median * by, quiet: 191.9, whole: 220.0 };
            let pair = |by| Pair { reference, ombx: slower(by) };
            Group { same: pair(slowdown), default: pair(1.01) }
        });
        Compared { flavour: Flavour::OpenMpi, row: &ROWS[0], groups: groups.collect(), count: None }
    }

    #[test]
    fn a_row_has_a_line_for_each_mode() {
        let text = times(&[compared(1.5)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[2].contains("| same counts | 203.0 | 304.5   | 1.500 (1.500 to 1.500) | 1.010"),
            "{text}"
        );
        assert!(
            lines[2].contains("MISSED")
                && lines[3].contains("| default ")
                && lines[3].ends_with("| met     |")
        );
        assert!(compared(1.5).missed() && !compared(1.01).missed());
    }

    #[test]
    fn a_page_says_what_was_not_done() {
        let page = page(&[compared(1.0)], &machine(7));
        assert!(page.starts_with("# Fidelity\n") && page.contains("seed 7") && page.contains("Not counted"));
    }
}
