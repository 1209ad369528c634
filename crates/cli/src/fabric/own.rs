//! Measuring what brings its own processes: this process starts them, and is the only rank.

use ombx_core::{
    error::Result,
    team::{Alone, Fabric},
};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::Stage;
use crate::{job::Job, launch::detect};

/// Measures in this process; of several that a launcher has started, in the first.
pub(super) fn take_part(stage: &mut Stage<'_>, part: &Job<'_>) -> Result<()> {
    if part.output.alone {
        // Whoever started this process and is gone cannot end it any more.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    } else if !detect::speaks() {
        return Ok(());
    }
    let system = rustix::system::uname();
    let library = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    stage.measure(&Alone(Fabric { name: "sockets", library }), part)
}
