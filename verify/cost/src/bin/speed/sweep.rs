//! Sweeps by default settings beside six runs of OMB, and the times in their result files.

use std::{fs, path::Path};

use ombx_estimate::launches::Cases;
use ombx_record::{
    file,
    result::Phases,
    stats::{Summary, median, order_bounds},
};
use ombx_toolchain::{Failure, Flavour, Result};

use crate::start::{Program, timed_or};

/// Runs of OMB that a careful user makes to see how much they differ.
pub(crate) const OMB_RUNS: usize = 6;
/// Half-width of the interval over launches, relative to the median, up to which a row is precise: the default of `--precision`.
const PRECISE: f64 = 0.02;

/// Command of ombx, and what it is compared with.
#[derive(Debug, PartialEq)]
pub(crate) struct Sweep {
    pub(crate) words: &'static [&'static str],
    /// What it is compared with.
    pub(crate) omb: Option<Beside>,
}

/// Program of OMB that measures the same as a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Beside {
    /// Its name, without `osu_`, and its options.
    pub(crate) words: &'static [&'static str],
    /// Maximum time of ombx as a part of that of [`OMB_RUNS`] runs.
    pub(crate) goal: f64,
}

/// Every size from 1 B to 4 MiB. By default, messages of a window share a buffer in `osu_bw` and not in `p2p.bw`: each also runs with the
/// default of the other.
pub(crate) const SWEEPS: [Sweep; 6] = [
    Sweep::beside(&["p2p.latency"], &["latency"], 0.5),
    Sweep::beside(&["p2p.bw"], &["bw"], 0.9),
    Sweep::beside(&["p2p.bw"], &["bw", "-b", "multiple"], 0.9),
    Sweep::beside(&["p2p.bw", "--buffers", "single"], &["bw"], 0.9),
    Sweep::beside(&["rma.put_bw"], &["put_bw"], 0.7),
    Sweep::beside(&["p2p.mbw_mr"], &["mbw_mr"], 0.9),
];

/// The suite of all OSU benchmarks.
pub(crate) const SUITE: Sweep = Sweep { words: &["suite:osu"], omb: None };
/// Exit code of the complete suite with MPICH 4.0 and 4.1, whose persistent collectives deliver wrong data
/// (docs/reference/mpi-libraries.md).
const WRONG_DATA: i32 = 5;

/// Run of a sweep.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken {
    /// Seconds of the bare program, of all runs of OMB, and of the whole command of ombx.
    pub(crate) bare_s: f64,
    pub(crate) omb_s: f64,
    pub(crate) whole_s: f64,
    pub(crate) launches: usize,
    /// Sum over all rows of all launches.
    pub(crate) phases: Phases,
    /// Seconds of each phase of the command, as it reports them.
    pub(crate) command: Vec<(String, f64)>,
    /// Cases, and those whose interval over launches is precise.
    pub(crate) cases: usize,
    pub(crate) precise: usize,
}

/// Runs of a sweep with one MPI.
#[derive(Debug)]
pub(crate) struct Swept {
    pub(crate) flavour: Flavour,
    pub(crate) sweep: &'static Sweep,
    pub(crate) runs: Vec<Taken>,
}

impl Sweep {
    const fn beside(words: &'static [&'static str], omb: &'static [&'static str], goal: f64) -> Sweep {
        Sweep { words, omb: Some(Beside { words: omb, goal }) }
    }

    /// Returns the command line.
    pub(crate) fn command(&self) -> String {
        format!("ombx run {}", self.words.join(" "))
    }

    /// Runs the sweep between two halves of the runs of OMB.
    pub(crate) fn measure(&self, program: &Program) -> Result<Taken> {
        let half = || match self.omb {
            Some(beside) => (0..OMB_RUNS / 2).map(|_| program.omb(beside.words)).sum(),
            None => Ok(0.0),
        };
        let (bare_s, before) = (program.bare()?, half()?);
        let taken = self.ombx(program)?;
        Ok(Taken { bare_s, omb_s: before + half()?, ..taken })
    }

    /// Runs the sweep alone.
    pub(crate) fn ombx(&self, program: &Program) -> Result<Taken> {
        let out = program.directory.join("sweep.jsonl");
        let mut command = program.command(&program.ombx);
        // A skipped row is no failure, as in the suite.
        command.arg("run").args(self.words).args(["--verbose", "--allow-skips", "--force", "-o"]).arg(&out);
        let (whole_s, messages) = timed_or(&mut command, self.omb.is_none().then_some(WRONG_DATA))?;
        let taken = read(&out);
        let _ = fs::remove_file(&out);
        Ok(Taken { whole_s, command: phases_in(&messages)?, ..taken? })
    }
}

impl Beside {
    /// Returns the command line.
    pub(crate) fn command(&self) -> String {
        format!("osu_{}", self.words.join(" "))
    }
}

impl Taken {
    /// Returns the time of ombx as a part of the time of OMB.
    pub(crate) fn ratio(&self) -> f64 {
        self.whole_s / self.omb_s
    }

    /// Returns seconds between rows: records are written and read, and ranks that a benchmark does not need sleep.
    pub(crate) fn between_rows_s(&self) -> f64 {
        let rows =
            self.command.iter().find(|(name, _)| name == "rows").map_or(f64::NAN, |(_, seconds)| *seconds);
        rows - self.phases.total_ns() as f64 / 1e9
    }
}

impl Swept {
    /// Returns a sweep without runs.
    pub(crate) fn new(flavour: Flavour, sweep: &'static Sweep) -> Swept {
        Swept { flavour, sweep, runs: Vec::new() }
    }

    /// Returns the distribution-free 95 % interval of the ratio; `None` below six runs.
    pub(crate) fn interval(&self) -> Option<[f64; 2]> {
        let mut ratios: Vec<f64> = self.runs.iter().map(Taken::ratio).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        order_bounds(ratios.len(), 0.5).map(|(low, high)| [ratios[low - 1], ratios[high - 1]])
    }

    /// Returns the median over runs.
    pub(crate) fn median(&self, figure: impl Fn(&Taken) -> f64) -> f64 {
        median(&self.runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }

    /// Returns whether the median ratio exceeds the goal.
    pub(crate) fn missed(&self) -> bool {
        self.sweep.omb.is_some_and(|beside| self.median(Taken::ratio) > beside.goal)
    }
}

/// Reads the line of `ombx -v` that says where its time went: `ombx: time 4.510 s: preparation 0.062, cores 0.031, ...`.
fn phases_in(messages: &str) -> Result<Vec<(String, f64)>> {
    let line = messages.lines().find_map(|line| line.strip_prefix("ombx: time ")?.split_once(" s: "));
    let phase = |part: &str| {
        let (name, seconds) = part.split_once(' ')?;
        Some((name.to_owned(), seconds.parse().ok()?))
    };
    line.and_then(|(_, parts)| parts.split(", ").map(phase).collect())
        .ok_or_else(|| Failure::Missing("ombx -v has not said where its time went".into()))
}

/// Reads the launches of a result file.
fn read(path: &Path) -> Result<Taken> {
    let file = file::open(path).map_err(|e| Failure::Missing(format!("{}: {e}", path.display())))?;
    let mut cases = Cases::default();
    file.runs.iter().for_each(|launch| cases.launch(launch));
    let launches = cases.groups().iter().map(|group| group.launches).max().unwrap_or(0);
    Ok(Taken { launches, ..of_cases(&cases) })
}

fn of_cases(cases: &Cases) -> Taken {
    let mut taken = Taken::default();
    for row in cases.groups().iter().flat_map(ombx_estimate::launches::Group::estimates) {
        let Some(phases) = row.phases else { continue };
        let precision = row.summary.as_ref().and_then(Summary::precision);
        taken.cases += 1;
        taken.precise += usize::from(precision.is_some_and(|reached| reached <= PRECISE));
        taken.phases = taken.phases.plus(phases);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(whole: &[f64]) -> Swept {
        let taken = |whole: &f64| Taken { omb_s: 10.0, whole_s: *whole, ..Taken::default() };
        Swept { runs: whole.iter().map(taken).collect(), ..Swept::new(Flavour::Mpich, &SWEEPS[0]) }
    }

    #[test]
    fn a_sweep_may_take_a_part_of_the_time_of_omb() {
        assert!(!swept(&[4.0, 4.9, 90.0]).missed());
        assert!(swept(&[4.0, 5.1, 90.0]).missed());
        let other = |sweep| Swept { sweep, ..swept(&[4.0, 8.9, 90.0]) };
        assert!(!other(&SWEEPS[1]).missed() && other(&SWEEPS[4]).missed());
        assert_eq!(swept(&[4.0, 5.1, 90.0]).interval(), None);
        assert_eq!(swept(&[3.0, 2.0, 4.0, 5.0, 1.0, 6.0]).interval(), Some([0.1, 0.6]));
        assert!(!Swept { sweep: &SUITE, ..swept(&[100.0]) }.missed());
    }

    #[test]
    fn phases_of_the_command_are_read_and_rows_have_time_between_them() {
        let messages =
            "ombx: starting \"mpiexec\"\nombx: time 2.100 s: start 0.100, rows 1.750, end 0.250\nmore";
        let command = phases_in(messages).unwrap();
        assert_eq!(command[2], ("end".to_owned(), 0.25));
        let phases = Phases { open_ns: 500_000_000, sample_ns: 1_000_000_000, ..Phases::default() };
        let taken = Taken { whole_s: 2.1, phases, command, ..Taken::default() };
        assert!((taken.between_rows_s() - 0.25).abs() < 1e-9);
        assert!(phases_in("ombx: time 2.100 s: start").is_err() && phases_in("").is_err());
    }
}
