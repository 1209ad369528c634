//! A rank over sockets: a worker that the coordinator has invited, or a rank of the user's launcher.

use std::{process, thread, time::Duration};

use ombx_core::{
    error::{Kind, Result},
    system::environment::hostname,
    team::Team,
    unit::Rank,
};
use ombx_sockets::{SocketTeam, session::join_timeout};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{
    failure,
    rendezvous::{self, Rendezvous},
};
use crate::{
    arguments::start::{Bind, StartArgs},
    job::Work,
    launch::{
        coordinator::{self, Invitation},
        cores::cores,
        detection,
    },
    rank::RankState,
    stderr::printable,
};

/// Time that the coordinator has for reporting a lost rank, which is the usual reason of a failed connection.
const COORDINATOR_PRINTS: Duration = Duration::from_millis(700);

/// Finds mistakes in how ranks of the user's launcher connect.
pub(super) fn check(start: &StartArgs) -> Result<()> {
    rendezvous::place(start).map(|_| ())
}

/// Joins the session and measures.
pub(super) fn measure(state: &mut RankState<'_>, work: &Work) -> Result<()> {
    let start = &state.job.start;
    if let Some(invitation) = coordinator::accepted() {
        let Invitation { token, rank, on_host, .. } = invitation;
        let cpus = if start.bind == Bind::None { Vec::new() } else { bind(*on_host) };
        let on_end = |code: u8, _: &str| process::exit(code.into());
        let (limit, addresses) = (join_timeout(on_host.1), invitation.coordinator());
        let team = SocketTeam::join_within(limit, &addresses, *token, *rank, on_end)
            .map_err(|e| e.within(format!("rank {rank} on {}", hostname())))?;
        team.set_cpus(cpus);
        measure_on(&team, state, work);
        return Ok(());
    }
    // Errors of the first rank are printed where they end the process.
    let Rendezvous { team, session } = rendezvous::join(start).inspect_err(|error| {
        if !detection::is_first_process() {
            stderr_line!("ombx: {}", printable(&error.to_string()));
        }
    })?;
    measure_on(&team, state, work);
    session.wait();
    Ok(())
}

/// Measures and leaves the session, or ends it with an error.
fn measure_on(team: &SocketTeam, state: &mut RankState<'_>, work: &Work) {
    // The barrier keeps each rank in the session while others still measure.
    let measured = state.measure(team, work).and_then(|()| team.barrier());
    if let Err(error) = measured {
        if error.kind() == Kind::Fabric {
            thread::sleep(COORDINATOR_PRINTS);
        }
        if team.rank() == Rank(0) {
            failure::print_rest();
        }
        failure::abort(team, &error);
    }
    team.leave();
}

/// Binds this rank to a core if this host has one for each of its ranks. Returns its share of the cores, of which that one is the first.
fn bind((rank, ranks): (u32, u32)) -> Vec<u32> {
    let cores = cores();
    if cores.len() < ranks as usize {
        return Vec::new();
    }
    let share: Vec<u32> = cores.into_iter().skip(rank as usize).step_by(ranks as usize).collect();
    let mut set = CpuSet::new();
    share.iter().take(1).for_each(|core| set.set(*core as usize));
    // If binding is not permitted, results show where the rank may run.
    let _ = sched_setaffinity(None, &set);
    share
}
