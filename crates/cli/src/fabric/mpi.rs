//! Being an MPI rank.

use std::time::Duration;

use ombx_core::{
    error::{Error, Result},
    measure::engine,
    team::Team,
    unit::Rank,
};
use ombx_mpi::Mpi;

use super::{Stage, crew};
use crate::{job::Job, launch};

/// An error that all ranks have is told by the first; the others give it this long.
const FIRST_SPEAKS: Duration = Duration::from_millis(300);

/// Starts MPI and measures what needs it; MPI ends when what is returned is dropped.
pub(super) fn take_part(stage: &mut Stage<'_>, part: &Job<'_>) -> Result<Mpi> {
    Mpi::abort_on_panic();
    let mpi = Mpi::start(part.work.threading()).unwrap_or_else(|error| not_started(&error));
    launch::detect::refuse_singletons(mpi.team().size())?;
    if let Err(error) = crew::meet(mpi.team(), stage.pipe.as_mut()) {
        fail(mpi.team(), &error);
    }
    if let Err(error) = stage.measure(mpi.team(), part) {
        fail(mpi.team(), &error);
    }
    Ok(mpi)
}

/// The others would wait for a rank that has no MPI.
fn not_started(error: &Error) -> ! {
    let rank = launch::detect::launcher().map_or(0, |started| started.rank);
    if rank != 0 {
        std::thread::sleep(FIRST_SPEAKS);
    }
    tell!("ombx: rank {rank} on {}: {error}", ombx_core::system::environment::hostname());
    Mpi::abort(error.kind().exit_code())
}

fn fail(team: &dyn Team, error: &Error) -> ! {
    if team.rank() != Rank(0) {
        std::thread::sleep(FIRST_SPEAKS);
    }
    tell!("ombx: rank {} on {}: {error}", team.rank(), ombx_core::system::environment::hostname());
    engine::give_up(team, error)
}
