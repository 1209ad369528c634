//! `MPI_Accumulate`: the origin combines its elements with those of the target's window.

use super::{Check, Elements, Epoch, Fill, Memory, Operation, Result};
use crate::entry::{OSU_PASSIVE, bandwidth, latency};

/// Combines elements, by default unsigned integers that it adds.
pub enum Accumulate {}

impl Operation for Accumulate {
    const CALLS: &'static [&'static str] = &["MPI_Accumulate"];
    const ELEMENTS: Elements = Elements::Accumulated;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.accumulate(slot)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_accumulated(fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_accumulated(fill)
    }
}

ombx_core::inventory::submit! {
    latency::<Accumulate>("rma.acc_latency", "one accumulate and its synchronisation")
        .osu("osu_acc_latency", "OSU MPI_Accumulate latency Test")
        .osu_with("osu_passive_acc_latency", "OSU Passive MPI_Accumulate latency Test", OSU_PASSIVE)
}
ombx_core::inventory::submit! { bandwidth::<Accumulate>("rma.acc_bw", "many accumulates, one synchronisation") }
