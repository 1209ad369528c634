//! `MPI_Get_accumulate`: the origin adds to the target's window and fetches its previous content.

use super::{Check, Epoch, Fill, Memory, Operation, Reduction, Result};
use crate::entry::{bandwidth, latency};

/// Adds unsigned integers, whose sum is exact in any order.
pub enum GetAccumulate {}

impl Operation for GetAccumulate {
    const CALLS: &'static [&'static str] = &["MPI_Get_accumulate"];
    const ADDS: bool = true;
    const LOCALS: usize = 2;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.get_accumulate(slot, Reduction::Sum)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_atomic(fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_summed(fill).and(memory.check_fetched(fill))
    }
}

ombx_core::inventory::submit! {
    latency::<GetAccumulate>("rma.get_acc_latency", "one get_accumulate (sum) and its synchronisation")
        .osu("osu_get_acc_latency", "OSU MPI_Get_accumulate latency Test")
}
ombx_core::inventory::submit! { bandwidth::<GetAccumulate>("rma.get_acc_bw", "many get_accumulates (sum), one synchronisation") }
