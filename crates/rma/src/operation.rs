//! The trait of one-sided operations.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        payload::{Check, Fill},
        reduction::Elements,
    },
    error::Result,
};
use ombx_mpi::{Epoch, Window};

use crate::memory::Memory;

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

    /// Issues the operation on one slot. The synchronisation completes it.
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()>;
    /// Runs after the last operation of an iteration, before the synchronisation.
    #[inline(always)]
    fn issued(_: &Epoch<'_>) -> Result<()> {
        Ok(())
    }
    /// Writes the data that the operation moves, and poison where data must arrive. Memory that no operation accesses stays untouched
    /// and takes no space.
    fn fill(memory: &mut Memory<'_>, fill: Fill);
    /// Compares what has arrived on this rank with what must have arrived.
    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check;
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
