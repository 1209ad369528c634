//! The role of this process in a job: it launches the ranks, coordinates them, or is one of them.

use ombx_core::error::{Error, Result};

use crate::{
    arguments::{launches::LaunchCount, start::Launcher},
    job::Job,
    launch::{self, detection},
    output::target,
    rank,
};

/// Runs a job in the role of this process and returns the exit code.
pub(crate) fn run(job: &Job) -> Result<u8> {
    #[cfg(feature = "sockets")]
    if job.role.coordinator {
        return launch::coordinator::run(job);
    }
    if job.role.relay.is_some() {
        return rank::run(job);
    }
    if let Some(out) = &job.output.out {
        let others = job.other_files();
        target::check(out, "-o", others.iter().map(|(what, other)| (*what, other.as_path())))?;
    }
    let (start, detected) = (&job.start, detection::launcher().is_some());
    let is_rank = match start.launcher {
        Launcher::None => true,
        Launcher::Auto => detected,
        Launcher::Mpiexec | Launcher::Srun => false,
    };
    let wrong = |why: &str| Err(Error::usage(why));
    match is_rank {
        true if !start.hosts.is_empty() || start.hostfile.is_some() => {
            wrong("a launcher has already started these ranks: leave out --hosts and --hostfile")
        }
        true if matches!(job.launches.count, LaunchCount::Fixed(2..)) => wrong(
            "--launches cannot repeat ranks that a launcher has started: repeat the launcher's command and join the files",
        ),
        true if !detected && start.ranks.is_some_and(|ranks| ranks > 1) => {
            wrong("--launcher none starts no ranks: leave out -n")
        }
        true => rank::run(job),
        false if start.rendezvous.is_some() => {
            wrong("--rendezvous is for ranks that a launcher has started: leave it out")
        }
        false => launch::run(job),
    }
}
