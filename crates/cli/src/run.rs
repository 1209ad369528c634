//! `ombx run`: starts ranks, or is one.

use ombx_core::{
    error::{Error, Result},
    plan::Plan,
    registry::{Choice, Registry},
};

use crate::{
    args::{Launcher, RunArgs},
    axes::Chosen,
    fabric, launch, select,
};

/// What is to be run, with every mistake found.
pub(crate) struct Job<'a> {
    pub(crate) args: &'a RunArgs,
    pub(crate) plan: Plan,
    pub(crate) choices: Vec<Choice>,
    pub(crate) rows: u64,
}

pub(crate) fn run(registry: &Registry, args: &RunArgs, chosen: Chosen) -> Result<u8> {
    let choices = select::benchmarks(registry, &args.patterns)?;
    let plan = select::plan(args, chosen, &choices)?;
    let rows = select::rows(&plan, &choices)?;
    let job = Job { args, plan, choices, rows };
    let started_by_us = args.relay.is_some();
    let is_rank = match args.launcher {
        Launcher::None => true,
        Launcher::Auto => launch::detect::launcher().is_some(),
        Launcher::Mpiexec | Launcher::Srun => false,
    };
    if started_by_us || is_rank {
        if !started_by_us && (!args.hosts.is_empty() || args.hostfile.is_some()) {
            return Err(Error::usage(
                "--hosts and --hostfile say where to start ranks, but a launcher has started them",
            ));
        }
        fabric::be_a_rank(&job)
    } else {
        launch::launch(&job)
    }
}
