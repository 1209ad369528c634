//! One-sided operations, one file each; a new one needs its `mod` line here and nothing else.

pub mod get;
pub mod put;

use ombx_core::{
    error::Result,
    payload::{Check, Fill},
};
use ombx_mpi::Epoch;

use crate::access::Memory;

/// An operation of an origin on its target's window.
pub trait Op: 'static {
    /// Issues it on one slot; completed by the synchronisation.
    fn issue(epoch: &Epoch<'_>, slot: u32) -> Result<()>;
    /// Writes what it moves, and poisons where that must arrive.
    fn fill(memory: &mut Memory<'_>, fill: Fill);
    /// Compares what has arrived on this rank.
    fn check(memory: &Memory<'_>, fill: Fill) -> Check;
}
