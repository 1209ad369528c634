//! The end of a job on a rank's error.

use std::{thread, time::Duration};

use ombx_core::{error::Error, measure::engine, system::environment::hostname, team::Team};

/// Time that rank 0 has for printing an error that all ranks have, before another rank prints it.
const RANK_0_PRINTS: Duration = Duration::from_millis(300);

/// Prints an error and ends all ranks.
pub(super) fn abort(team: &dyn Team, error: &Error) -> ! {
    print(team.rank().0.into(), error);
    engine::give_up(team, error)
}

/// Prints an error of this rank.
pub(super) fn print(rank: u64, error: &Error) {
    if rank != 0 {
        thread::sleep(RANK_0_PRINTS);
    }
    stderr_line!("ombx: rank {rank} on {}: {error}", hostname());
}
