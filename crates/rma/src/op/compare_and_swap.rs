//! `MPI_Compare_and_swap`: the origin replaces one element of the target's window if it has the expected value.

use super::{Check, Elements, Epoch, Fill, Memory, Operation, Result};
use crate::entry::latency;

/// The first swap succeeds. Later ones find the value that it wrote and fail, but would write the same. Verified iterations of odd
/// parity therefore compare with a value that the window does not have. The result is the value before the last swap.
pub enum CompareAndSwap {}

impl Operation for CompareAndSwap {
    const CALLS: &'static [&'static str] = &["MPI_Compare_and_swap"];
    const LOCALS: usize = 3;
    const ELEMENTS: Elements = Elements::Compared;
    const ONE_ELEMENT: bool = true;
    const ITERATIONS_PER_CHECK: u64 = 2;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.compare_and_swap(slot)
    }

    fn fill(m: &mut Memory<'_>, fill: Fill) {
        m.fill_swapped(fill);
        let write = if fill.has_odd_parity() { Fill::poison } else { Fill::write };
        write(&fill.beside(), m.peer, m.slots, m.locals[2].bytes_mut());
    }

    fn check(m: &mut Memory<'_>, fill: Fill) -> Check {
        let previous = if fill.iterations > 1 { (fill, m.rank) } else { (fill.beside(), m.peer) };
        let (held, owner) = if fill.has_odd_parity() { (fill.beside(), m.rank) } else { (fill, m.peer) };
        let swapped = if m.is_target { held.check(owner, m.slots, m.window, m.rank) } else { Check::Passed };
        let mut fetched = || previous.0.check(previous.1, m.slots, m.locals[1].bytes_mut(), m.rank);
        swapped.and(if m.is_origin { fetched() } else { Check::Passed })
    }
}

ombx_core::inventory::submit! {
    latency::<CompareAndSwap>("rma.cas_latency", "one compare_and_swap and its synchronisation").sizes("8")
        .osu("osu_cas_latency", "OSU MPI_Compare_and_swap latency Test").available(ombx_mpi::compare_and_swap_works)
}
