//! Sweeps with a goal, and the times in their result files.

use std::{fs, path::Path};

use ombx_core::{
    measure::phases::Phases,
    result::Measurement,
    stats::{Summary, median},
};
use ombx_results::file;

use crate::start::{Program, timed_or};
use ombx_toolchain::{
    failure::{Failure, Result},
    mpi::Flavour,
};

/// Half-width of the interval, relative to the median, up to which a row is precise.
const PRECISE: f64 = 0.01;

/// Command and its time limit, not counting the start of MPI.
#[derive(Debug, PartialEq)]
pub(crate) struct Sweep {
    pub(crate) words: &'static [&'static str],
    pub(crate) ranks: u32,
    pub(crate) flavours: &'static [Flavour],
    pub(crate) goal_s: Option<f64>,
}

/// Every size from 1 B to 4 MiB by default settings, and every other size with the time limit of suite:osu.
pub(crate) const SWEEPS: [Sweep; 6] = [
    Sweep {
        words: &["p2p.latency", "--sizes", "1..4M"],
        ranks: 2,
        flavours: &Flavour::ALL,
        goal_s: Some(0.6),
    },
    Sweep {
        words: &["p2p.latency", "--sizes", "1..4M:x4", "--max-time", "100ms"],
        ranks: 2,
        flavours: &Flavour::ALL,
        goal_s: Some(0.6),
    },
    Sweep {
        words: &["rma.put_bw", "--sizes", "1..4M"],
        ranks: 2,
        flavours: &Flavour::ALL,
        goal_s: Some(0.8),
    },
    Sweep {
        words: &["rma.put_bw", "--sizes", "1..4M:x4", "--max-time", "100ms"],
        ranks: 2,
        flavours: &Flavour::ALL,
        goal_s: Some(0.8),
    },
    // Ranks of MPICH do not yield: more ranks than cores would only wait for the scheduler.
    Sweep {
        words: &["p2p.mbw_mr", "-n", "4", "--sizes", "1..4M"],
        ranks: 4,
        flavours: &[Flavour::OpenMpi],
        goal_s: Some(1.5),
    },
    Sweep {
        words: &["p2p.mbw_mr", "-n", "4", "--sizes", "1..4M:x4", "--max-time", "100ms"],
        ranks: 4,
        flavours: &[Flavour::OpenMpi],
        goal_s: Some(1.5),
    },
];

/// The suite of all OSU benchmarks.
pub(crate) const SUITE: Sweep =
    Sweep { words: &["suite:osu"], ranks: 2, flavours: &Flavour::ALL, goal_s: None };
/// Exit code of the complete suite with MPICH 4.0 and 4.1, whose persistent collectives deliver wrong data
/// (docs/reference/mpi-libraries.md).
const WRONG_DATA: i32 = 5;

/// Run of a sweep.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    /// Seconds of the bare program before it, and of the whole command.
    pub(crate) bare_s: f64,
    pub(crate) whole_s: f64,
    /// Sum over all rows.
    pub(crate) phases: Phases,
    /// Measured rows, and those that are precise.
    pub(crate) rows: usize,
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
    /// Returns the command line.
    pub(crate) fn command(&self) -> String {
        format!("ombx run {}", self.words.join(" "))
    }

    /// Runs the sweep repeatedly, each time after the bare program.
    pub(crate) fn measure(&'static self, program: &Program, times: u16) -> Result<Swept> {
        let out = program.directory.join("sweep.jsonl");
        let run = |_| {
            let bare_s = program.bare(self.ranks)?;
            let mut command = program.command(&program.ombx);
            // A skipped row is no failure, as in the suite.
            command.arg("run").args(self.words).args(["--quiet", "--allow-skips", "-o"]).arg(&out);
            let whole_s = timed_or(&mut command, self.goal_s.is_none().then_some(WRONG_DATA))?;
            read(&out).map(|taken| Taken { bare_s, whole_s, ..taken })
        };
        let runs = (0..times).map(run).collect::<Result<Vec<_>>>()?;
        let _ = fs::remove_file(&out);
        Ok(Swept { flavour: program.mpi.flavour, sweep: self, runs })
    }
}

impl Taken {
    /// Returns seconds without starting and ending MPI.
    pub(crate) fn own_s(&self) -> f64 {
        self.whole_s - self.bare_s
    }

    /// Returns seconds outside rows: launcher, MPI, reading and printing.
    pub(crate) fn around_s(&self) -> f64 {
        self.whole_s - self.phases.total_ns() as f64 / 1e9
    }
}

impl Swept {
    /// Returns the median over runs.
    pub(crate) fn median(&self, figure: impl Fn(&Taken) -> f64) -> f64 {
        median(&self.runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    }

    /// Returns whether the median exceeds the goal.
    pub(crate) fn missed(&self) -> bool {
        self.sweep.goal_s.is_some_and(|goal| self.median(Taken::own_s) > goal)
    }
}

/// Reads the times of all rows of a result file.
fn read(path: &Path) -> Result<Taken> {
    let file = file::open(path).map_err(|e| Failure::Missing(format!("{}: {e}", path.display())))?;
    Ok(of_rows(file.runs.iter().flat_map(|run| &run.rows)))
}

fn of_rows<'r>(rows: impl Iterator<Item = &'r Measurement>) -> Taken {
    let mut taken = Taken::default();
    for row in rows {
        let Some(phases) = row.phases else { continue };
        let precision = row.summary.as_ref().and_then(Summary::precision);
        taken.rows += 1;
        taken.precise += usize::from(precision.is_some_and(|reached| reached <= PRECISE));
        taken.phases = taken.phases.plus(phases);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(own: &[f64]) -> Swept {
        let taken = |own: &f64| Taken { bare_s: 1.0, whole_s: 1.0 + own, ..Taken::default() };
        Swept { flavour: Flavour::Mpich, sweep: &SWEEPS[0], runs: own.iter().map(taken).collect() }
    }

    #[test]
    fn a_goal_applies_to_the_time_without_mpi() {
        assert!(!swept(&[0.5, 0.59, 9.0]).missed());
        assert!(swept(&[0.5, 0.61, 9.0]).missed());
        assert!(!Swept { sweep: &SUITE, ..swept(&[100.0]) }.missed());
    }

    #[test]
    fn every_sweep_has_the_ranks_of_its_command() {
        for sweep in &SWEEPS {
            let said = sweep.words.iter().skip_while(|word| **word != "-n").nth(1);
            assert_eq!(said.map_or(2, |n| n.parse().unwrap()), sweep.ranks, "{}", sweep.command());
        }
    }
}
