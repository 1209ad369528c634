//! Starting ranks: finds a launcher, starts it, and watches over the job until it has ended.

pub(crate) mod detect;
mod mpiexec;
mod supervise;

use std::env;

use ombx_core::error::{Error, Result};

use crate::{
    args::{Launcher, Relay},
    deadline,
    job::{Extent, Job},
    output::Output,
    progress::Progress,
};

/// Starts the ranks of a job and returns its exit code.
pub(crate) fn launch(job: &Job<'_>) -> Result<u8> {
    let Extent { ranks, rows, steps } = job.extent;
    let progress = Progress::new(rows, job.output.quiet);
    let relay = if progress.is_shown() { Relay::Progress } else { Relay::Quiet };
    let launcher = match job.start.launcher {
        Launcher::Auto if detect::in_slurm_allocation() => Launcher::Srun,
        Launcher::Auto => Launcher::Mpiexec,
        other => other,
    };
    let command = mpiexec::command(job.start, launcher, ranks, job.work.threading(), rank_arguments(relay)?)?;
    let mut output = Output::open(job.output, &job.work)?;
    if job.output.verbose {
        eprintln!("ombx: starting {command:?}");
    }
    let limit = deadline::of_job(&job.plan, steps, job.start.timeout);
    supervise::supervise(command, limit, job.output, &mut output, &progress)
}

/// This program and its own arguments, with what makes it a rank of ours.
fn rank_arguments(relay: Relay) -> Result<Vec<std::ffi::OsString>> {
    let program =
        env::current_exe().map_err(|e| Error::fabric(format!("this program does not find itself: {e}")))?;
    let mode = match relay {
        Relay::Quiet => "--relay=quiet",
        Relay::Progress => "--relay=progress",
    };
    let mut own = env::args_os().skip(1);
    // The subcommand first: an option after a lone -- would be a pattern.
    Ok([Some(program.into()), own.next(), Some(mode.into())].into_iter().flatten().chain(own).collect())
}

/// The command line as the user typed it, for results.
pub(crate) fn shown_argv() -> Vec<String> {
    env::args_os().map(|a| a.to_string_lossy().into_owned()).filter(|a| !a.starts_with("--relay=")).collect()
}
