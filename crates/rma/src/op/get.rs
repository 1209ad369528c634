//! `MPI_Get`: the origin reads from the target's window.

use super::{Check, Epoch, Fill, Memory, Operation, Result};
use crate::entry::{OSU_PASSIVE, bandwidth, bidirectional_bandwidth, latency};

/// Copies the target's window into the origin's buffer.
pub enum Get {}

impl Operation for Get {
    const CALLS: &'static [&'static str] = &["MPI_Get"];

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.get(slot)
    }

    fn fill(m: &mut Memory<'_>, fill: Fill) {
        let (slots, rank, peer) = (m.slots, m.rank, m.peer);
        m.fill(|local| fill.poison(peer, slots, local), |window| fill.write(rank, slots, window));
    }

    fn check(m: &mut Memory<'_>, fill: Fill) -> Check {
        if m.is_origin { fill.check(m.peer, m.slots, m.locals[0].bytes_mut(), m.rank) } else { Check::Passed }
    }
}

ombx_core::inventory::submit! {
    latency::<Get>("rma.get_latency", "one get and its synchronisation")
        .osu("osu_get_latency", "OSU MPI_Get latency Test")
        .osu_with("osu_passive_get_latency", "OSU Passive MPI_Get latency Test", OSU_PASSIVE)
}
ombx_core::inventory::submit! {
    bandwidth::<Get>("rma.get_bw", "many gets, one synchronisation")
        .osu("osu_get_bw", "OSU MPI_Get Bandwidth Test")
        .osu_with("osu_passive_get_bw", "OSU Passive MPI_Get Bandwidth Test", OSU_PASSIVE)
}
ombx_core::inventory::submit! { bidirectional_bandwidth::<Get>("rma.get_bibw", "many gets in both directions") }
