//! `MPI_Fetch_and_op`: the origin combines an element with one of the target's window and fetches its previous value.

use super::{Check, Elements, Epoch, Fill, Memory, Operation, Result};
use crate::entry::latency;

/// Increments a counter, as work stealing and ticket locks do.
pub enum FetchAndOp {}

impl Operation for FetchAndOp {
    const CALLS: &'static [&'static str] = &["MPI_Fetch_and_op"];
    const ELEMENTS: Elements = Elements::Fetched;
    const LOCALS: usize = 2;
    const ONE_ELEMENT: bool = true;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.fetch_and_op(slot)
    }

    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_accumulated(fill);
    }

    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_accumulated(fill).and(memory.check_fetched(fill))
    }
}

ombx_core::inventory::submit! {
    latency::<FetchAndOp>("rma.fop_latency", "one fetch_and_op and its synchronisation").sizes("8")
        .osu("osu_fop_latency", "OSU MPI_Fetch_and_op latency Test")
}
