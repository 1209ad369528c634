//! `MPI_Accumulate`: the origin adds to the target's window.

use super::{Check, Epoch, Fill, Memory, Operation, Reduction, Result};
use crate::entry::{OSU_PASSIVE, bandwidth, latency};

/// Adds unsigned integers, whose sum is exact in any order.
pub enum Accumulate {}

impl Operation for Accumulate {
    const CALLS: &'static [&'static str] = &["MPI_Accumulate"];
    const ADDS: bool = true;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.accumulate(slot, Reduction::Sum)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_atomic(fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_summed(fill)
    }
}

ombx_core::inventory::submit! {
    latency::<Accumulate>("rma.acc_latency", "one accumulate (sum) and its synchronisation")
        .osu("osu_acc_latency", "OSU MPI_Accumulate latency Test")
        .osu_with("osu_passive_acc_latency", "OSU Passive MPI_Accumulate latency Test", OSU_PASSIVE)
}
ombx_core::inventory::submit! { bandwidth::<Accumulate>("rma.acc_bw", "many accumulates (sum), one synchronisation") }
