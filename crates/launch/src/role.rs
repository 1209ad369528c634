//! The role of this process in a job: it launches the ranks, coordinates them, or is one of them.

use std::ffi::OsString;

use ombx_core::benchmark::Medium;
use ombx_record::error::{Error, Result};

use crate::{
    build::{self, Build},
    job::{Job, rank_job::RankJob},
    launch::{
        self, detection, guard,
        start::{Bind, Launcher, Start},
    },
    output::terminal,
    rank,
};

#[cfg(feature = "mpi")]
use crate::launch::transport;
#[cfg(feature = "sockets")]
use crate::launch::{coordinator, invitation, served};

/// Runs a process that another process of ombx has started for a job, and returns the exit code. Its words are not read as those of a user;
/// `None` for other words.
pub fn started(words: &[OsString]) -> Option<Result<u8>> {
    Some(match words.get(1)?.to_str()? {
        launch::RANK => RankJob::parse(words.get(2)?).and_then(rank::run),
        build::SUBCOMMAND => terminal::print(format!("{}\n", Build::here().line())),
        guard::END => {
            guard::end(&words[2..]);
            Ok(0)
        }
        #[cfg(feature = "mpi")]
        transport::SUBCOMMAND => transport::exchange(),
        #[cfg(feature = "sockets")]
        coordinator::COORDINATOR => coordinator::run(),
        #[cfg(feature = "sockets")]
        invitation::WORKER => invitation::accept().and_then(|invitation| rank::run_invited(&invitation)),
        #[cfg(feature = "sockets")]
        served::SUBCOMMAND => served::run_rank(),
        #[cfg(feature = "sockets")]
        ombx_sockets::pipeline::SUBCOMMAND => Ok(ombx_sockets::pipeline::serve()),
        _ => return None,
    })
}

/// Runs a job in the role of this process and returns the exit code.
pub fn run(job: &Job) -> Result<u8> {
    job.check_files()?;
    let start = &job.start;
    let is_rank = start.is_of_rank();
    if is_rank {
        reject_options_of_start(start)?;
    } else if start.launcher == Launcher::Auto {
        detection::refuse_emptied()?;
        start.refuse_one_of_several()?;
    }
    let wrong = |why: &str| Err(Error::usage(why));
    let sockets = job.work.kinds().iter().any(|kind| kind.medium == Medium::Sockets);
    if !is_rank {
        if start.rendezvous.is_some() {
            return wrong("--rendezvous is for ranks that a launcher has started: leave it out");
        }
        return launch::run(job);
    }
    if start.rendezvous.is_some() && !sockets {
        return wrong("--rendezvous is for benchmarks over sockets: leave it out");
    }
    if job.launches.chosen().is_some_and(|count| count > 1) {
        return wrong(
            "--launches cannot repeat ranks that a launcher has started: repeat the launcher's command with -o FILE --append",
        );
    }
    rank::run_under_launcher(job)
}

/// Rejects options that have an effect only if this process starts the ranks.
pub fn reject_options_of_start(start: &Start) -> Result<()> {
    let given = [
        ("-n", start.ranks.is_some()),
        ("--connect", start.server.is_some()),
        ("--hosts", !start.hosts.is_empty()),
        ("--hostfile", start.hostfile.is_some()),
        ("--ssh", start.ssh.is_some()),
        ("--bind", start.bind != Bind::Auto),
        ("--launcher-arg", !start.launcher_arg.is_empty()),
        ("--interface", start.interface.is_some()),
    ];
    let given = given.into_iter().find(|(_, given)| *given);
    given.map_or(Ok(()), |(option, _)| Err(without_start(option)))
}

/// Returns the error about an option that has no effect because this process does not start the ranks.
pub fn without_start(option: &str) -> Error {
    let why = if detection::launcher().is_some() {
        "a launcher has already started these ranks"
    } else {
        "--launcher none starts no ranks"
    };
    Error::usage(format!("{why}: leave out {option}"))
}
