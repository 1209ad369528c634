//! `MPI_Fetch_and_op`: the origin adds to one element of the target's window and fetches its previous value.

use super::{Check, Epoch, Fill, Memory, Operation, Reduction, Result};
use crate::entry::latency;

/// Increments a counter, as work stealing and ticket locks do.
pub enum FetchAndOp {}

impl Operation for FetchAndOp {
    const CALLS: &'static [&'static str] = &["MPI_Fetch_and_op"];
    const ADDS: bool = true;
    const LOCALS: usize = 2;
    const ONE_ELEMENT: bool = true;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.fetch_and_op(slot, Reduction::Sum)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_atomic(fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_summed(fill).and(memory.check_fetched(fill))
    }
}

ombx_core::inventory::submit! {
    latency::<FetchAndOp>("rma.fop_latency", "one fetch_and_op (sum) and its synchronisation").sizes("8")
        .osu("osu_fop_latency", "OSU MPI_Fetch_and_op latency Test")
}
