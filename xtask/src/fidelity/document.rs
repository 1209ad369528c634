//! The tables, as printed and as kept in docs/FIDELITY.md.

use std::fs;

use super::{
    callgrind::Count,
    launch::Launched,
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

/// All that was measured of a row with one MPI.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) flavour: Flavour,
    pub(crate) row: Row,
    /// With the same counts.
    pub(crate) same: Vec<Pair>,
    /// With what ombx does by itself, and as much in C.
    pub(crate) default: Vec<Pair>,
    pub(crate) count: Option<Count>,
    /// Why it does not run with this MPI.
    pub(crate) skipped: Option<String>,
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

impl Circumstances {
    /// Keeps what a launch says of its start and its library.
    pub(crate) fn met(&mut self, launched: &Launched) {
        if self.started.is_empty() {
            self.started.clone_from(&launched.started);
        }
        if !self.libraries.contains(&launched.library) {
            self.libraries.push(launched.library.clone());
        }
    }
}

impl Compared {
    pub(crate) fn new(flavour: Flavour, row: Row) -> Compared {
        Compared { flavour, row, same: Vec::new(), default: Vec::new(), count: None, skipped: None }
    }

    /// The pairs of both modes, where there are any.
    fn modes(&self) -> impl Iterator<Item = (&'static str, &[Pair])> {
        let modes = [("same counts", &self.same[..]), ("default", &self.default[..])];
        modes.into_iter().filter(|(_, pairs)| !pairs.is_empty())
    }

    /// Whether a goal is certainly missed.
    pub(crate) fn missed(&self) -> bool {
        let missed = |ratio: Ratio| ratio.verdict(self.row.goal) == Verdict::Missed;
        self.modes().any(|(_, pairs)| of_medians(pairs).is_some_and(missed))
            || self.count.as_ref().is_some_and(|count| !count.faults().is_empty())
    }

    fn line(&self, mode: &str, pairs: &[Pair]) -> Vec<String> {
        let middle = |figure: fn(&Pair) -> f64| {
            let all: Vec<f64> = pairs.iter().map(figure).collect();
            median(&all).map_or("n/a".into(), |ns| format!("{ns:.1}"))
        };
        let decides = of_medians(pairs);
        let quiet: Option<Vec<(f64, f64)>> =
            pairs.iter().map(|pair| Some((pair.ombx.quiet?, pair.reference.quiet?))).collect();
        let quiet = quiet.and_then(|quiet| Ratio::of(&quiet));
        vec![
            self.row.name.clone(),
            mode.to_owned(),
            middle(|pair| pair.reference.median),
            middle(|pair| pair.ombx.median),
            decides.map_or("n/a".into(), |ratio| ratio.to_string()),
            quiet.map_or("n/a".into(), |ratio| ratio.to_string()),
            pairs.len().to_string(),
            format!("{:.2}", self.row.goal),
            decides.map_or(Verdict::Unresolved, |ratio| ratio.verdict(self.row.goal)).to_string(),
        ]
    }
}

fn of_medians(pairs: &[Pair]) -> Option<Ratio> {
    Ratio::of(&pairs.iter().map(|pair| (pair.ombx.median, pair.reference.median)).collect::<Vec<_>>())
}

/// The flavours among rows, each with its rows.
fn by_flavour(compared: &[Compared]) -> impl Iterator<Item = (Flavour, Vec<&Compared>)> {
    Flavour::ALL.into_iter().filter_map(|flavour| {
        let rows: Vec<&Compared> = compared.iter().filter(|one| one.flavour == flavour).collect();
        (!rows.is_empty()).then_some((flavour, rows))
    })
}

/// Times and ratios, a table for each MPI, and before it how many goals are met.
pub(crate) fn times(compared: &[Compared]) -> String {
    let head =
        ["row", "ombx", "C ns", "ombx ns", "ratio (95 % interval)", "of quiet", "pairs", "goal", "verdict"];
    let mut text = String::new();
    for (flavour, rows) in by_flavour(compared) {
        let lines: Vec<Vec<String>> =
            rows.iter().flat_map(|one| one.modes().map(|(mode, pairs)| one.line(mode, pairs))).collect();
        text += &format!("### {flavour}\n\n{}\n\n{}\n", tally(&lines), table(&head, lines.clone()));
        let skipped =
            rows.iter().filter_map(|one| Some(format!("- {}: {}\n", one.row.name, one.skipped.as_ref()?)));
        let skipped: String = skipped.collect();
        if !skipped.is_empty() {
            text += &format!("Not here:\n{skipped}\n");
        }
    }
    text
}

/// How often each verdict was given: the last cell of a line.
fn tally(lines: &[Vec<String>]) -> String {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for verdict in lines.iter().filter_map(|line| line.last()) {
        *counts.entry(verdict).or_default() += 1;
    }
    let words: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    format!("{} lines: {}.", lines.len(), words.join(", "))
}

/// Instructions, a table for each MPI; nothing where none were counted.
pub(crate) fn instructions(compared: &[Compared]) -> Option<String> {
    let head = ["row", "C", "ombx", "added", "calls of an iteration", "verdict"];
    let mut text = String::new();
    for (flavour, rows) in by_flavour(compared) {
        let line = |one: &&Compared| {
            let count = one.count.as_ref()?;
            let numbers =
                [count.reference.own, count.ombx.own, count.added()].map(|number| format!("{number:.1}"));
            let names = [one.row.name.clone()];
            Some(names.into_iter().chain(numbers).chain([count.calls(), count.to_string()]).collect())
        };
        let lines: Vec<Vec<String>> = rows.iter().filter_map(line).collect();
        if !lines.is_empty() {
            text += &format!("### {flavour}\n\n{}\n", table(&head, lines));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// An aligned table in Markdown, readable as it is.
pub(crate) fn table(head: &[&str], lines: Vec<Vec<String>>) -> String {
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

/// Where a part of the page begins.
const MEASURED: &str = "## MPI\n";
const SOCKETS: &str = "## Sockets\n";

/// The page with what was measured over MPI, keeping what it says of sockets.
pub(crate) fn with_measured(page: &str, compared: &[Compared], about: &Circumstances) -> String {
    let sockets = page.find(SOCKETS).map_or("", |at| &page[at..]);
    let counted = instructions(compared).unwrap_or_else(|| {
        "Not counted in this run: `cargo xtask fidelity --callgrind` does, where valgrind is installed.\n"
            .into()
    });
    let (measured, libraries) = (times(compared), about.libraries.join("; "));
    format!(
        "{}{MEASURED}\n{}; {libraries}.\n\n{measured}## Instructions\n\n{counted}\n{sockets}",
        head(),
        about.machine()
    )
}

/// The page with what was measured over sockets, keeping what it says of MPI.
pub(crate) fn with_sockets(page: &str, table: &str, about: &Circumstances) -> String {
    let measured = page.find(MEASURED).map_or("", |at| &page[at..]);
    let measured = measured.find(SOCKETS).map_or(measured, |at| &measured[..at]);
    format!("{}{measured}{SOCKETS}\n{}.\n\n{table}", head(), about.machine())
}

fn head() -> String {
    let method = include_str!("method.md");
    format!(
        "# Fidelity\n\n<!-- Written by `cargo xtask fidelity --callgrind --write` and `cargo xtask fidelity --sockets \
         --write`; do not edit. -->\n\n{method}\n"
    )
}

impl Circumstances {
    /// Date and machine.
    fn machine(&self) -> String {
        let Circumstances { started, cpu, cpus, load, seed, .. } = self;
        format!("{started} on {cpus} CPUs ({cpu}); load average before: {load}; seed {seed}")
    }
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
    use crate::fidelity::row;

    fn compared(slowdown: f64) -> Compared {
        let pairs = |by: f64| -> Vec<Pair> {
            (0..7)
                .map(|i| {
                    let reference = Launch { median: 200.0 + f64::from(i), quiet: Some(190.0) };
                    Pair { reference, ombx: Launch { median: reference.median * by, quiet: Some(191.9) } }
                })
                .collect()
        };
        let row = row::matching("p2p.latency")[0].clone();
        Compared { same: pairs(slowdown), default: pairs(1.005), ..Compared::new(Flavour::OpenMpi, row) }
    }

    #[test]
    fn a_row_has_a_line_for_each_mode() {
        let text = times(&[compared(1.5)]);
        assert!(text.starts_with("### Open MPI\n\n2 lines: 1 MISSED, 1 met.\n\n"), "{text}");
        let lines: Vec<&str> = text.lines().skip(6).collect();
        assert!(
            lines[0].contains("| same counts | 203.0 | 304.5   | 1.500 (1.500 to 1.500) | 1.010"),
            "{text}"
        );
        assert!(
            lines[0].contains("MISSED")
                && lines[1].contains("| default ")
                && lines[1].ends_with("| 1.01 | met     |")
        );
        assert!(compared(1.5).missed() && !compared(1.005).missed());
    }

    #[test]
    fn a_part_is_replaced_and_the_other_kept() {
        let about = machine(7);
        let page = with_measured("", &[compared(1.0)], &about);
        assert!(page.starts_with("# Fidelity\n") && page.contains("seed 7") && page.contains("Not counted"));
        let page = with_sockets(&page, "| a table |\n", &about);
        assert!(page.contains("p2p.latency") && page.ends_with("| a table |\n"));
        let skipped = Compared {
            skipped: Some("needs MPI 4".into()),
            same: Vec::new(),
            default: Vec::new(),
            ..compared(1.0)
        };
        let page = with_measured(&page, &[skipped], &about);
        assert!(page.contains("- p2p.latency: needs MPI 4") && page.ends_with("| a table |\n"));
        assert_eq!(page.matches("## Sockets\n").count(), 1);
    }
}
