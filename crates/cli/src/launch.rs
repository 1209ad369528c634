//! Starting ranks: finds a launcher, starts it, and watches over the job until it has ended.

#[cfg(any(feature = "mpi", feature = "sockets"))]
pub(crate) mod cores;
mod crew;
pub(crate) mod detect;
pub(crate) mod mpiexec;
mod orphans;
mod session;
mod supervise;

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
};

use ombx_core::{
    benchmark::entry::Medium,
    error::{Error, Result},
    measure::plan::Launch,
};

use crate::{
    args::Launcher,
    argv, deadline, fabric,
    job::{Extent, INTERRUPTED, Job},
    launch::supervise::Started,
    output::Output,
    progress::Progress,
    start,
};

/// Starts the ranks of a job, for each medium after the other and all of it as often as it says, and returns its exit code: the
/// worst of all.
pub(crate) fn launch(job: &Job<'_>) -> Result<u8> {
    let Extent { rows, time, .. } = job.extent;
    let parts = job.parts();
    if matches!(job.start.launcher, Launcher::Mpiexec | Launcher::Srun)
        && parts.iter().all(|part| part.medium() == Medium::Sockets)
    {
        return Err(Error::usage(
            "--launcher starts MPI ranks, and ranks over sockets need none; to use one all the same, put it before ombx and \
             give --rendezvous",
        ));
    }
    if job.start.ranks.is_some() && parts.iter().all(|part| part.medium() == Medium::Own) {
        return Err(Error::usage(
            "-n is for ranks, and a pipeline has none; --nodes says how many nodes it has",
        ));
    }
    start::check(job.start, job.extent.ranks)?;
    // What cannot be started is found before a file is touched.
    parts.iter().try_for_each(|part| command(part, None).map(|_| ()))?;
    let mut output = Output::open(job)?;
    let limit = deadline::of_job(time, job.start.timeout);
    let mut worst = Ok(0);
    'launches: for launch in job.launches.each() {
        let progress = Progress::new(rows, job.output.quiet, launch);
        for part in &parts {
            output.next_run();
            let mut command = command(part, launch)?;
            // Both launchers heed it, even when this process is gone; it comes after ours, which can say more.
            let late = limit.saturating_add(deadline::BEYOND).as_secs().min(1 << 30);
            command.env("MPIEXEC_TIMEOUT", late.to_string());
            // Ranks over sockets and pipelines reach other hosts by it.
            if let Some(ssh) = &job.start.ssh {
                command.env("OMBX_SSH", ssh);
            }
            if job.output.verbose {
                tell!("ombx: starting {command:?}");
            }
            let started = if part.medium() == Medium::Own { Started::Itself } else { Started::Launcher };
            let ended = supervise::supervise(command, started, limit, job.output, &mut output, &progress);
            worst = ended.map(|code| code.max(worst.unwrap_or(0)));
            if !matches!(worst, Ok(..INTERRUPTED)) {
                break 'launches;
            }
        }
    }
    output.finish()?;
    worst
}

/// The launcher that starts ranks here.
pub(crate) fn chosen(launcher: Launcher) -> Launcher {
    match launcher {
        Launcher::Auto if detect::in_slurm_allocation() => Launcher::Srun,
        Launcher::Auto => Launcher::Mpiexec,
        other => other,
    }
}

/// What starts the ranks of a job that has one medium.
fn command(job: &Job<'_>, launch: Option<Launch>) -> Result<Command> {
    match job.medium() {
        Medium::Mpi => {
            let (ranks, threading) = (job.extent.ranks, job.work.threading());
            let arguments = rank_arguments(launch)?;
            mpiexec::command(job.start, chosen(job.start.launcher), ranks, threading, arguments)
        }
        Medium::Sockets => {
            fabric::check(job)?;
            itself(launch, COORDINATOR)
        }
        Medium::Own if job.start.hostfile.is_some() => {
            Err(Error::usage("--hostfile is for ranks; a pipeline's nodes are dealt to --hosts a,b,c"))
        }
        Medium::Own => itself(launch, ALONE),
    }
}

/// This program again, with what makes it something else.
fn itself(launch: Option<Launch>, role: &str) -> Result<Command> {
    let mut words = rank_arguments(launch)?.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words.next()).arg(role).args(words).stdin(Stdio::null());
    Ok(command)
}

/// What makes this program a launcher of ranks over sockets.
pub(crate) const COORDINATOR: &str = "--coordinator";

/// What makes this program the one that measures what needs no ranks.
pub(crate) const ALONE: &str = "--alone";

/// The path of this program, as it is for its ranks.
pub(crate) fn this_program() -> Result<PathBuf> {
    env::current_exe().map_err(|e| Error::fabric(format!("this program does not find itself: {e}")))
}

/// This program and its own arguments, with what makes it a rank of ours.
fn rank_arguments(launch: Option<Launch>) -> Result<Vec<OsString>> {
    let program = this_program()?;
    let mut own = argv::words().into_iter().skip(1);
    // The subcommand first: an option after a lone -- would be a pattern.
    let which = launch.map(|launch| format!("--launch={launch}").into());
    let ours = [Some(program.into()), own.next(), Some("--relay=records".into()), which];
    Ok(ours.into_iter().flatten().chain(own).collect())
}

/// The command line of a rank that this process, which starts ranks itself, invites.
#[cfg(feature = "sockets")]
pub(crate) fn argv_of_ranks() -> Vec<OsString> {
    argv::words().into_iter().filter(|word| word != COORDINATOR).collect()
}
