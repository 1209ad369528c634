//! A job with every mistake found: what is measured, on which ranks, and where rows go. It starts ranks, or is one of them.

use ombx_core::{
    error::{Error, Result},
    links,
    plan::Plan,
    registry::Choice,
    threads::Threading,
};

use crate::{
    args::{Launcher, OutputArgs, StartArgs},
    fabric, launch, select,
};

/// What `ombx run` and `ombx links` have in common.
pub(crate) struct Job<'a> {
    pub(crate) start: &'a StartArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) plan: Plan,
    pub(crate) work: Work,
    pub(crate) extent: Extent,
}

/// What is measured.
pub(crate) enum Work {
    Benchmarks(Vec<Choice>),
    Links(links::Task),
}

impl Work {
    /// What it asks of the library for threads.
    pub(crate) fn threading(&self) -> Threading {
        match self {
            Work::Benchmarks(choices) => select::threading(choices),
            Work::Links(_) => Threading::Single,
        }
    }
}

/// How much that is, if this process starts the ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) ranks: u32,
    pub(crate) rows: u64,
    /// Rows one after the other; those measured at the same time count once.
    pub(crate) steps: u64,
}

impl Job<'_> {
    pub(crate) fn run(&self) -> Result<u8> {
        let started_by_us = self.output.relay.is_some();
        let is_rank = match self.start.launcher {
            Launcher::None => true,
            Launcher::Auto => launch::detect::launcher().is_some(),
            Launcher::Mpiexec | Launcher::Srun => false,
        };
        if started_by_us || is_rank {
            if !started_by_us && (!self.start.hosts.is_empty() || self.start.hostfile.is_some()) {
                return Err(Error::usage(
                    "--hosts and --hostfile say where to start ranks, but a launcher has started them",
                ));
            }
            fabric::be_a_rank(self)
        } else {
            launch::launch(self)
        }
    }
}
