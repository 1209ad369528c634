//! `MPI_Put`: the origin writes into the target's window.

use super::{Check, Epoch, Fill, Memory, Operation, Result};
use crate::entry::{OSU_PASSIVE, bandwidth, bidirectional_bandwidth, latency};

/// Copies the origin's buffer into the target's window.
pub enum Put {}

impl Operation for Put {
    const CALLS: &'static [&'static str] = &["MPI_Put"];

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.put(slot)
    }

    fn fill(m: &mut Memory<'_>, fill: Fill) {
        let (slots, rank, peer) = (m.slots, m.rank, m.peer);
        m.fill(|local| fill.write(rank, slots, local), |window| fill.poison(peer, slots, window));
    }

    fn check(m: &mut Memory<'_>, fill: Fill) -> Check {
        if m.is_target { fill.check(m.peer, m.slots, m.window, m.rank) } else { Check::Passed }
    }
}

ombx_core::inventory::submit! {
    latency::<Put>("rma.put_latency", "one put and its synchronisation")
        .osu("osu_put_latency", "OSU MPI_Put Latency Test")
        .osu_with("osu_passive_put_latency", "OSU Passive MPI_Put Latency Test", OSU_PASSIVE)
}
ombx_core::inventory::submit! {
    bandwidth::<Put>("rma.put_bw", "many puts, one synchronisation")
        .osu("osu_put_bw", "OSU MPI_Put Bandwidth Test")
        .osu_with("osu_passive_put_bw", "OSU Passive MPI_Put Bandwidth Test", OSU_PASSIVE)
}
ombx_core::inventory::submit! {
    bidirectional_bandwidth::<Put>("rma.put_bibw", "many puts in both directions").osu("osu_put_bibw", "OSU MPI_Put Bi-directional Bandwidth Test")
}
