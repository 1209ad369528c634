//! A rank for benchmarks that start their own processes: it is the only rank.

use ombx_core::{
    error::Result,
    team::{Alone, Fabric},
};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::state::RankState;
use crate::{job::Work, launch::detection};

/// Measures in this process. If the user's launcher has started several processes, only the first measures.
pub(super) fn measure(state: &mut RankState<'_>, work: &Work) -> Result<()> {
    if state.job.role.alone {
        // If the launching process dies it cannot end this one.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    } else if !detection::is_first_process() {
        return Ok(());
    }
    let system = rustix::system::uname();
    let library = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    state.measure(&Alone(Fabric { name: "sockets", library }), work)
}
