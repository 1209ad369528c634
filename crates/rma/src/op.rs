//! One-sided operations, one file each; a new one needs its `mod` line here and nothing else.

pub mod accumulate;
pub mod compare_and_swap;
pub mod fetch_and_op;
pub mod get;
pub mod get_accumulate;
pub mod put;
pub mod request;

use ombx_core::{
    benchmark::payload::{Check, Fill},
    error::Result,
};
use ombx_mpi::{Epoch, Reduction};

use self::{get::Get, put::Put};
use crate::memory::Memory;

/// An operation of an origin on its target's window.
pub trait Op: 'static {
    /// Local buffers that it uses: 1, 2 with one for results, 3 with one to compare with.
    const LOCALS: usize = 1;
    /// Whether it works on one element only, so that a message is 1, 2, 4 or 8 bytes.
    const ONE_ELEMENT: bool = false;
    /// Whether it has requests, which are for passive targets only (MPI 4.1, 12.3.5).
    const HAS_REQUESTS: bool = false;

    /// Issues it on one slot; completed by the synchronisation.
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()>;
    /// After the last of an iteration, before the synchronisation.
    #[inline(always)]
    fn issued(_: &Epoch<'_>) -> Result<()> {
        Ok(())
    }
    /// Writes what it moves, and poisons where that must arrive.
    fn fill(memory: &mut Memory<'_>, fill: Fill);
    /// Compares what has arrived on this rank.
    fn check(memory: &mut Memory<'_>, fill: Fill) -> Check;
}
