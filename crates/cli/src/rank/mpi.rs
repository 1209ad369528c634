//! A rank over MPI.

use std::io;

use ombx_core::{
    error::{Error, Result},
    system::environment::hostname,
    team::Team,
};
use ombx_mpi::Mpi;

use super::{failure, handshake, state::RankState};
use crate::{
    job::{Work, accelerator},
    launch::{detection, limits},
    output::relay::Message,
};

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
    detection::refuse_singletons(mpi.team().size())?;
    let team = mpi.team();
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

/// Ends the job: the other ranks would wait for this one, which has no MPI.
fn abort_without_mpi(error: &Error) -> ! {
    let rank = detection::launcher().map_or(0, |started| started.rank);
    failure::print(rank, error);
    Mpi::abort(error.kind().exit_code())
}
