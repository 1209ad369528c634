//! One-sided operations: their trait, and a type for each.
//!
//! A new operation needs its type and its entries here.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{payload::Fill, reduction::Elements},
    error::Result,
    result::Check,
};
use ombx_mpi::{Epoch, Window, WindowKind, compare_and_swap_works};

use crate::{
    entry::{FLUSH, OSU_PASSIVE, bandwidth, bidirectional_bandwidth, latency},
    memory::Memory,
};

/// An operation of an origin on its target's window.
pub trait Operation: 'static {
    /// Functions of MPI that issue the operation and complete its request. Those of the synchronisation follow from `--sync`.
    const CALLS: &'static [&'static str];
    /// Number of local buffers: 1 for the origin's data, 2 with fetched results, 3 with values to compare with.
    const LOCALS: usize = 1;
    /// What the operation does with elements, which determines the values of `--type` and `--op`.
    const ELEMENTS: Elements = Elements::Bytes;
    /// Whether the operation works on one element only, so that a message has the size of the element.
    const ONE_ELEMENT: bool = false;
    /// Checked iterations that together show every kind of wrong data.
    const ITERATIONS_PER_CHECK: u64 = 1;
    /// Whether the operation returns a request, which needs a passive target (MPI 4.1, 12.3.5).
    const HAS_REQUESTS: bool = false;

    /// Refuses a kind of window and a width of elements with which the library crashes in the operation.
    fn refuse_crash(_: WindowKind, _: u64) -> Result<()> {
        Ok(())
    }
    /// Issues the operation on one slot. The synchronisation completes it.
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()>;
    /// Runs after the last operation of an iteration, before the synchronisation.
    #[inline(always)]
    fn issued(_: &Epoch<'_>) -> Result<()> {
        Ok(())
    }
    /// Writes the data that the operation moves, and poison where data must arrive. The default is for operations that combine elements.
    /// Memory that no operation accesses stays untouched and takes no space.
    fn fill(memory: &mut Memory<'_>, fill: Fill) {
        memory.fill_accumulated(fill);
    }
    /// Compares what has arrived on this rank with what must have arrived, by default as for operations that combine elements.
    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check {
        memory.check_accumulated(fill)
    }
}

/// A window and the number of operations `O` that an iteration issues on it.
pub struct Iteration<O> {
    pub(crate) window: Window,
    depth: u32,
    operation: PhantomData<O>,
}

impl<O: Operation> Iteration<O> {
    pub(crate) fn new(window: Window, depth: u32) -> Iteration<O> {
        Iteration { window, depth, operation: PhantomData }
    }

    /// Issues one operation, without a loop.
    #[inline(always)]
    pub(crate) fn issue_one(epoch: &Epoch<'_>) -> Result<()> {
        O::issue(epoch, 0)?;
        O::issued(epoch)
    }

    /// Issues one operation per slot.
    #[inline(always)]
    pub(crate) fn issue_all(&self, epoch: &Epoch<'_>) -> Result<()> {
        for slot in 0..self.depth {
            O::issue(epoch, slot)?;
        }
        O::issued(epoch)
    }
}

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

ombx_core::inventory::submit!(
    latency::<Put>("rma.put_latency", "one put and its synchronisation")
        .osu("osu_put_latency", "OSU MPI_Put Latency Test")
        .osu_with("osu_passive_put_latency", "OSU Passive MPI_Put Latency Test", OSU_PASSIVE)
);
ombx_core::inventory::submit!(
    bandwidth::<Put>("rma.put_bw", "many puts, one synchronisation")
        .osu("osu_put_bw", "OSU MPI_Put Bandwidth Test")
        .osu_with("osu_passive_put_bw", "OSU Passive MPI_Put Bandwidth Test", OSU_PASSIVE)
);
ombx_core::inventory::submit!(
    bidirectional_bandwidth::<Put>("rma.put_bibw", "many puts in both directions")
        .osu("osu_put_bibw", "OSU MPI_Put Bi-directional Bandwidth Test")
);

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

ombx_core::inventory::submit!(
    latency::<Get>("rma.get_latency", "one get and its synchronisation")
        .osu("osu_get_latency", "OSU MPI_Get latency Test")
        .osu_with("osu_passive_get_latency", "OSU Passive MPI_Get latency Test", OSU_PASSIVE)
);
ombx_core::inventory::submit!(
    bandwidth::<Get>("rma.get_bw", "many gets, one synchronisation")
        .osu("osu_get_bw", "OSU MPI_Get Bandwidth Test")
        .osu_with("osu_passive_get_bw", "OSU Passive MPI_Get Bandwidth Test", OSU_PASSIVE)
);
ombx_core::inventory::submit!(bidirectional_bandwidth::<Get>("rma.get_bibw", "many gets in both directions"));

/// Declares the form of an operation that returns a request.
macro_rules! requested {
    ($(#[$doc:meta])* $name:ident, $plain:ident, $call:ident, $function:literal) => {
        $(#[$doc])*
        pub enum $name {}

        impl Operation for $name {
            const CALLS: &'static [&'static str] = &[$function, "MPI_Waitall"];
            const ELEMENTS: Elements = $plain::ELEMENTS;
            const LOCALS: usize = $plain::LOCALS;
            const ONE_ELEMENT: bool = $plain::ONE_ELEMENT;
            const ITERATIONS_PER_CHECK: u64 = $plain::ITERATIONS_PER_CHECK;
            const HAS_REQUESTS: bool = true;

            #[inline(always)]
            fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> { epoch.$call(slot) }

            #[inline(always)]
            fn issued(epoch: &Epoch<'_>) -> Result<()> { epoch.wait_all() }

            fn fill(memory: &mut Memory<'_>, fill: Fill) { $plain::fill(memory, fill); }

            fn check(memory: &mut Memory<'_>, fill: Fill) -> Check { $plain::check(memory, fill) }
        }
    };
}
requested!(/// Completes at the origin when its request does.
    Rput, Put, rput, "MPI_Rput");
requested!(/// Completes when its request does.
    Rget, Get, rget, "MPI_Rget");

ombx_core::inventory::submit!(
    latency::<Rput>("rma.rput_latency", "one put with a request, the wait for it and its synchronisation")
        .usually(FLUSH)
);
ombx_core::inventory::submit!(
    bandwidth::<Rput>("rma.rput_bw", "many puts with requests, one wait and one synchronisation")
        .usually(FLUSH)
);
ombx_core::inventory::submit!(
    latency::<Rget>("rma.rget_latency", "one get with a request, the wait for it and its synchronisation")
        .usually(FLUSH)
);
ombx_core::inventory::submit!(
    bandwidth::<Rget>("rma.rget_bw", "many gets with requests, one wait and one synchronisation")
        .usually(FLUSH)
);

/// Combines elements, by default unsigned integers that it adds.
pub enum Accumulate {}

impl Operation for Accumulate {
    const CALLS: &'static [&'static str] = &["MPI_Accumulate"];
    const ELEMENTS: Elements = Elements::Accumulated;

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()> {
        epoch.accumulate(slot)
    }
}

ombx_core::inventory::submit!(
    latency::<Accumulate>("rma.acc_latency", "one accumulate and its synchronisation")
        .osu("osu_acc_latency", "OSU MPI_Accumulate latency Test")
        .osu_with("osu_passive_acc_latency", "OSU Passive MPI_Accumulate latency Test", OSU_PASSIVE)
);
ombx_core::inventory::submit!(bandwidth::<Accumulate>("rma.acc_bw", "many accumulates, one synchronisation"));

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
}

ombx_core::inventory::submit!(
    latency::<GetAccumulate>("rma.get_acc_latency", "one get_accumulate and its synchronisation")
        .osu("osu_get_acc_latency", "OSU MPI_Get_accumulate latency Test")
);
ombx_core::inventory::submit!(bandwidth::<GetAccumulate>(
    "rma.get_acc_bw",
    "many get_accumulates, one synchronisation"
));

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
}

ombx_core::inventory::submit!(
    latency::<FetchAndOp>("rma.fop_latency", "one fetch_and_op and its synchronisation")
        .sizes("8")
        .osu("osu_fop_latency", "OSU MPI_Fetch_and_op latency Test")
);

/// The first swap succeeds. Later ones find the value that it wrote and fail, but would write the same. Verified iterations of odd
/// parity therefore compare with a value that the window does not have. The result is the value before the last swap.
pub enum CompareAndSwap {}

impl Operation for CompareAndSwap {
    const CALLS: &'static [&'static str] = &["MPI_Compare_and_swap"];
    const LOCALS: usize = 3;
    const ELEMENTS: Elements = Elements::Compared;
    const ONE_ELEMENT: bool = true;
    const ITERATIONS_PER_CHECK: u64 = 2;

    fn refuse_crash(kind: WindowKind, width: u64) -> Result<()> {
        compare_and_swap_works(kind, width)
    }

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

ombx_core::inventory::submit!(
    latency::<CompareAndSwap>("rma.cas_latency", "one compare_and_swap and its synchronisation")
        .sizes("8")
        .osu("osu_cas_latency", "OSU MPI_Compare_and_swap latency Test")
);
