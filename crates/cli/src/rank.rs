//! What a rank does: connects to the others, measures, and ends the whole job on an error.

#[cfg(any(feature = "mpi", feature = "sockets"))]
mod failure;
#[cfg(feature = "mpi")]
mod handshake;
#[cfg(feature = "mpi")]
mod mpi;
mod own_processes;
#[cfg(feature = "sockets")]
pub(crate) mod rendezvous;
mod sink;
#[cfg(feature = "sockets")]
mod sockets;
mod state;
mod watchdog;

use std::time::Duration;

#[cfg(not(all(feature = "mpi", feature = "sockets")))]
use ombx_core::error::Error;
use ombx_core::{benchmark::Medium, error::Result};

use self::state::RankState;
use crate::job::{Job, time_limit};
#[cfg(feature = "sockets")]
use crate::launch::invitation;

/// Measures as a rank. A rank of the launching process has one medium; a rank of the user's launcher uses one medium after the other.
pub(crate) fn run(job: &Job) -> Result<u8> {
    // Under the user's launcher the number of rows is unknown here, and time limits are the user's.
    let limited = job.role.relay.is_some() || job.start.timeout.is_some();
    let limit = match limited {
        true => time_limit::of_job(job.extent.time, job.start.timeout).saturating_add(time_limit::AFTER_JOB),
        false => Duration::MAX,
    };
    watchdog::start(job.work.silence(job.start.timeout), limit);
    let mut state = RankState::new(job)?;
    let media = match job.role.relay {
        None => job.work.media(),
        Some(_) if job.role.alone => vec![Medium::Own],
        #[cfg(feature = "sockets")]
        Some(_) if invitation::accepted().is_some() => vec![Medium::Sockets],
        Some(_) => vec![Medium::Mpi],
    };
    #[cfg(feature = "sockets")]
    if job.role.relay.is_none() && media.contains(&Medium::Sockets) {
        sockets::check(&job.start)?;
    }
    // MPI is finalized after the last medium: its launcher takes an earlier end of a rank for a failure.
    #[cfg(feature = "mpi")]
    let mut mpi = Vec::new();
    for medium in media {
        let work = job.work.over(medium);
        match medium {
            #[cfg(feature = "mpi")]
            Medium::Mpi => mpi.push(mpi::measure(&mut state, &work)?),
            #[cfg(feature = "sockets")]
            Medium::Sockets => sockets::measure(&mut state, &work)?,
            #[cfg(not(feature = "mpi"))]
            Medium::Mpi => return Err(Error::usage(crate::launch::no_mpi::NO_MPI)),
            #[cfg(not(feature = "sockets"))]
            Medium::Sockets => return Err(Error::usage(crate::launch::NO_SOCKETS)),
            Medium::Own => own_processes::measure(&mut state, &work)?,
        }
    }
    let code = state.finish()?;
    #[cfg(feature = "mpi")]
    drop(mpi);
    Ok(code)
}
