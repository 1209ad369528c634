//! A rank over MPI.

use std::{io, thread, time::Duration};

use ombx_core::{
    benchmark::{Initialization, Threading},
    error::{Error, Kind, Result},
    system::environment::hostname,
    team::Team,
};
use ombx_mpi::Mpi;
use rustix::process::{Signal, getpid, kill_process};

use super::{failure, handshake};
use crate::{
    job::{Work, accelerator},
    launch::{detection, limits},
    output::relay::Message,
    rank::RankState,
};

/// Time in which the other ranks start MPI.
const OTHERS_START: Duration = Duration::from_secs(30);

/// Initializes MPI and measures. MPI is finalized when the returned value is dropped.
pub(super) fn measure(state: &mut RankState<'_>, work: &Work) -> Result<Mpi> {
    Mpi::abort_on_panic();
    if state.pipe.is_some() && detection::is_first_on_host() {
        // Standard error may be closed; the launching process then does without.
        let _ = Message::Started { host: hostname() }.write(&mut io::stderr());
    }
    accelerator::enter(work);
    let started = limits::check_rank().and_then(|()| Mpi::start_as(work.initialization(), work.threading()));
    let mpi = started.unwrap_or_else(|error| abort_without_mpi(&error));
    detection::refuse_singletons(mpi.team().size()).inspect_err(|error| {
        if detection::is_first_alone() {
            stderr_line!("ombx: {error}");
        }
    })?;
    let team: &dyn Team = mpi.team();
    handshake::same_build(team).unwrap_or_else(|error| failure::abort(team, &error));
    // A rank with a mistake of its own takes part in this, see `share`. MPI ends as usual, and rank 0 prints it.
    team.agree(Ok(())).or_else(|error| match error.kind() {
        // This rank alone has it: others wait for it.
        Kind::Fabric => failure::abort(team, &error),
        _ => Err(error),
    })?;
    // The launching process knows the ranks by the numbers of the launcher.
    let measured = handshake::run(team, state.pipe.as_mut())
        .and_then(|()| ombx_mpi::grants(work.chosen_threading()))
        .and_then(|()| accelerator::open(work, team))
        .and_then(|()| measure_numbered(state, team, work));
    measured.unwrap_or_else(|error| failure::abort(team, &error));
    Ok(mpi)
}

/// Measures on all ranks, with the numbers that the work gives them.
fn measure_numbered(state: &mut RankState<'_>, team: &dyn Team, work: &Work) -> Result<()> {
    match work.numbering() {
        Some(matrix) => state.measure(&*matrix.number(team)?, work),
        None => state.measure(team, work),
    }
}

/// Tells the other ranks of the launcher about an error that this rank has found before it started MPI: they would wait for it. Rank 0
/// prints the error of the lowest rank that has one. If the others do not start MPI within a time, this rank prints its error and ends.
pub(crate) fn share(error: &Error) {
    let Some(started) = detection::launcher().filter(|started| started.ranks != Some(1)) else { return };
    let mine = Error::new(error.kind(), format!("{error} (on {})", hostname()));
    let (late, rank) = (mine.to_string(), started.rank);
    thread::spawn(move || {
        thread::sleep(OTHERS_START);
        if rank > 0 {
            stderr_line!("ombx: rank {rank}: {late}");
        }
        // Handlers of exit could run beside the start of MPI, and a launcher may ignore an exit code before it.
        let _ = kill_process(getpid(), Signal::KILL);
    });
    // MPI has started already if this error is that of another rank.
    let Ok(mpi) = Mpi::start_as(Initialization::World, Threading::Single) else { return };
    if detection::refuse_singletons(mpi.team().size()).is_err() {
        return;
    }
    handshake::same_build(mpi.team()).unwrap_or_else(|error| failure::abort(mpi.team(), &error));
    match mine.kind() {
        // Ranks do not agree on failures of the transport.
        Kind::Fabric => abort_without_mpi(error),
        _ => drop((mpi.team() as &dyn Team).agree::<()>(Err(mine))),
    }
}

/// Waits until rank 0 has printed an error that all ranks have: Open MPI ends the other ranks as soon as one has ended.
pub(crate) fn let_rank_0_print() {
    if detection::launcher().is_some_and(|started| started.rank > 0) {
        thread::sleep(failure::RANK_0_PRINTS);
    }
}

/// Ends the job: the other ranks would wait for this one, which has no MPI.
fn abort_without_mpi(error: &Error) -> ! {
    let rank = detection::launcher().map_or(0, |started| started.rank);
    failure::print(rank, error);
    Mpi::abort(error.kind().exit_code())
}
