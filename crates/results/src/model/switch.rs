//! Names for what a change between two lines looks like.

use super::{Estimate, Fit, Switch};

/// What a switch looks like in the times of a ping-pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The fixed time rises by at least the time of a short message, as the handshake of a rendezvous makes it rise. Only the
    /// first such switch of an MPI library has this name.
    Rendezvous,
    /// Times step up, without the signs of a rendezvous.
    StepUp,
    /// Times step down.
    StepDown,
    /// Each further byte takes longer.
    MorePerByte,
    /// Each further byte takes less time.
    LessPerByte,
}

impl Protocol {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Rendezvous => "eager to rendezvous",
            Protocol::StepUp => "times step up",
            Protocol::StepDown => "times step down",
            Protocol::MorePerByte => "more time per byte",
            Protocol::LessPerByte => "less time per byte",
        }
    }
}

/// Returns the name of each switch. `short` is the one-way time of a short message.
pub(super) fn named(fit: &Fit, short: Estimate, is_mpi: bool) -> Vec<Protocol> {
    let mut is_eager = is_mpi;
    let name = |switch: &Switch| {
        let handshake = switch.fixed.value >= short.value && is_risen(&switch.fixed);
        match switch.step {
            step if is_eager && handshake && step.value > 0.0 => {
                is_eager = false;
                Protocol::Rendezvous
            }
            step if is_risen(&step) => Protocol::StepUp,
            step if step.sign() < 0 => Protocol::StepDown,
            _ if switch.per_byte.value > 0.0 => Protocol::MorePerByte,
            _ => Protocol::LessPerByte,
        }
    };
    fit.switches.iter().map(name).collect()
}

/// Returns whether launches agree that a value rises. One launch has no interval, and its value decides.
fn is_risen(change: &Estimate) -> bool {
    change.sign() > 0 || change.interval.is_none() && change.value > 0.0
}
