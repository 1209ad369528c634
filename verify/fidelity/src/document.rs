//! Full tables of times and instructions, with a line for each row.

use crate::{
    callgrind::Count,
    programs::Launched,
    ratio::{Launch, Ratio, Verdict, median},
    row::Row,
};
use ombx_toolchain::{machine::Machine, mpi::Flavour, table::table};

/// One launch of each program with the same counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) reference: Launch,
    pub(crate) ombx: Launch,
}

/// Results of a row with one MPI.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) flavour: Flavour,
    pub(crate) row: Row,
    /// Pairs with the same fixed counts.
    pub(crate) same: Vec<Pair>,
    /// Pairs in which ombx decides the counts, and the C loops repeat them.
    pub(crate) default: Vec<Pair>,
    pub(crate) count: Option<Count>,
    /// Reason why the row does not run with this MPI.
    pub(crate) skipped: Option<String>,
}

/// Circumstances of a measurement.
#[derive(Debug, Default)]
pub(crate) struct Circumstances {
    /// Start of the first launch.
    pub(crate) started: String,
    /// Version strings of the MPI libraries.
    pub(crate) libraries: Vec<String>,
    pub(crate) machine: Machine,
    pub(crate) seed: u64,
}

impl Circumstances {
    /// Returns the circumstances before the first launch.
    pub(crate) fn now(seed: u64) -> Self {
        Self { machine: Machine::now(), seed, ..Self::default() }
    }

    /// Returns date, machine and seed.
    pub(crate) fn heading(&self) -> String {
        format!("{} on {}; seed {}", self.started, self.machine, self.seed)
    }

    /// Keeps the start of the first launch and the version of each library.
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

    /// Returns the pairs of each mode that was measured.
    pub(crate) fn modes(&self) -> impl Iterator<Item = (&'static str, &[Pair])> {
        let modes = [("same counts", &self.same[..]), ("default", &self.default[..])];
        modes.into_iter().filter(|(_, pairs)| !pairs.is_empty())
    }

    /// Returns whether a goal is certainly missed.
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

pub(crate) fn of_medians(pairs: &[Pair]) -> Option<Ratio> {
    Ratio::of(&pairs.iter().map(|pair| (pair.ombx.median, pair.reference.median)).collect::<Vec<_>>())
}

/// Returns the rows of each MPI.
pub(crate) fn by_flavour(compared: &[Compared]) -> impl Iterator<Item = (Flavour, Vec<&Compared>)> {
    Flavour::ALL.into_iter().filter_map(|flavour| {
        let rows: Vec<&Compared> = compared.iter().filter(|one| one.flavour == flavour).collect();
        (!rows.is_empty()).then_some((flavour, rows))
    })
}

/// Returns times and ratios, a table for each MPI.
pub(crate) fn times(compared: &[Compared]) -> String {
    let head =
        ["row", "ombx", "C ns", "ombx ns", "ratio (95 % interval)", "of quiet", "pairs", "goal", "verdict"];
    let mut text = String::new();
    for (flavour, rows) in by_flavour(compared) {
        let lines: Vec<Vec<String>> =
            rows.iter().flat_map(|one| one.modes().map(|(mode, pairs)| one.line(mode, pairs))).collect();
        text += &format!("### {flavour}\n\n{}\n", table(&head, lines));
        let skipped =
            rows.iter().filter_map(|one| Some(format!("- {}: {}\n", one.row.name, one.skipped.as_ref()?)));
        let skipped: String = skipped.collect();
        if !skipped.is_empty() {
            text += &format!("Not here:\n{skipped}\n");
        }
    }
    text
}

/// Returns instructions, a table for each MPI; `None` if none were counted.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::row;

    pub(crate) fn compared(slowdown: f64) -> Compared {
        let pairs = |by: f64| -> Vec<Pair> {
            (0..7)
                .map(|i| {
                    let reference = Launch { median: 200.0 + f64::from(i), quiet: Some(190.0) };
                    Pair { reference, ombx: Launch { median: reference.median * by, quiet: Some(191.9) } }
                })
                .collect()
        };
        let row = row::tests::row("p2p.latency");
        Compared { same: pairs(slowdown), default: pairs(1.005), ..Compared::new(Flavour::OpenMpi, row) }
    }

    #[test]
    fn a_row_has_a_line_for_each_mode() {
        let text = times(&[compared(1.5)]);
        assert!(text.starts_with("### Open MPI\n\n| row"), "{text}");
        let lines: Vec<&str> = text.lines().skip(4).collect();
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
}
