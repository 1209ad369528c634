//! `MPI_Accumulate`: the origin adds to the target's window.

use super::{Check, Epoch, Fill, Memory, Op, Reduction, Result};
use crate::entry::{PASSIVE, bandwidth, latency};

/// Unsigned integers are added, so that the sum is exact however often.
pub enum Accumulate {}

impl Op for Accumulate {
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
        .osu_with("osu_passive_acc_latency", "OSU Passive MPI_Accumulate latency Test", PASSIVE)
}
ombx_core::inventory::submit! { bandwidth::<Accumulate>("rma.acc_bw", "many accumulates (sum), one synchronisation") }
