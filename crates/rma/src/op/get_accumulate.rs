//! `MPI_Get_accumulate`: the origin combines its elements with those of the target's window and fetches its previous content.

use super::{Check, Elements, Epoch, Fill, Memory, Operation, Result};
use crate::entry::{bandwidth, latency};

/// Combines elements, by default unsigned integers that it adds.
pub enum GetAccumulate {}

impl Operation for GetAccumulate {
    const CALLS: &'static [&'static str] = &["MPI_Get_accumulate"];
    const ELEMENTS: Elements = Elements::Fetched;
    const LOCALS: usize = 2;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.get_accumulate(slot)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_accumulated(fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_accumulated(fill).and(memory.check_fetched(fill))
    }
}

ombx_core::inventory::submit! {
    latency::<GetAccumulate>("rma.get_acc_latency", "one get_accumulate and its synchronisation")
        .osu("osu_get_acc_latency", "OSU MPI_Get_accumulate latency Test")
}
ombx_core::inventory::submit! { bandwidth::<GetAccumulate>("rma.get_acc_bw", "many get_accumulates, one synchronisation") }
