//! Being a rank of a session over sockets.

use std::{net::SocketAddr, time::Duration};

use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Kind, Result},
    measure::engine,
    system::environment,
    team::Team,
    unit::Rank,
};
use ombx_sockets::{SocketTeam, Token};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{
    Stage,
    invitation::{Invitation, invitation},
    rendezvous::{self, Rendezvous},
};
use crate::{args::Bind, dispatch_words, job::Job, launch::cores::cores};

/// An error that all ranks have is told by the first; the others give it this long.
const FIRST_SPEAKS: Duration = Duration::from_millis(300);
/// A connection that failed may have done so because a rank died, of which the coordinator tells better.
const COORDINATOR_SPEAKS: Duration = Duration::from_millis(700);

/// `ombx worker`: reads its invitation and runs the command line in it.
pub(crate) fn work(registry: &Registry) -> Result<u8> {
    let words = Invitation::accept()?.argv.clone();
    dispatch_words(registry, &mut words.into_iter().map(Into::into))
}

/// Joins a session and measures what its ranks measure.
pub(super) fn take_part(stage: &mut Stage<'_>, part: &Job<'_>) -> Result<()> {
    if let Some(invitation) = invitation() {
        let Invitation { token, rank, seat, .. } = invitation;
        if part.start.bind != Bind::None {
            bind(*seat);
        }
        let team = join(&invitation.coordinator(), *token, *rank, |code, _| std::process::exit(code.into()))?;
        measure(stage, part, &team);
        team.leave();
        return Ok(());
    }
    let Rendezvous { team, held } = rendezvous::meet(part.start)?;
    measure(stage, part, &team);
    team.leave();
    held.wait();
    Ok(())
}

fn join(
    addresses: &[SocketAddr],
    token: Token,
    rank: u32,
    ends: ombx_sockets::session::OnEnd,
) -> Result<SocketTeam> {
    SocketTeam::join(addresses, token, rank, ends)
        .map_err(|e| e.within(format!("rank {rank} on {}", environment::hostname())))
}

fn measure(stage: &mut Stage<'_>, part: &Job<'_>, team: &SocketTeam) {
    // Nobody leaves while another still measures.
    let done = stage.measure(team, part).and_then(|()| team.barrier());
    if let Err(error) = done {
        fail(team, &error);
    }
}

fn fail(team: &SocketTeam, error: &Error) -> ! {
    if error.kind() == Kind::Fabric {
        std::thread::sleep(COORDINATOR_SPEAKS);
    }
    if team.rank() != Rank(0) {
        std::thread::sleep(FIRST_SPEAKS);
    }
    tell!("ombx: rank {} on {}: {error}", team.rank(), environment::hostname());
    engine::give_up(team, error)
}

/// A core for each rank of this host, while there are enough.
fn bind((own, ranks): (u32, u32)) {
    let cores = cores();
    let Some(core) = cores.get(own as usize).filter(|_| ranks as usize <= cores.len()) else { return };
    let mut set = CpuSet::new();
    set.set(*core as usize);
    // Where it is not allowed, results show where the rank may run.
    let _ = sched_setaffinity(None, &set);
}
