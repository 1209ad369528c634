//! The timed loop alone, so that a benchmark can measure the cost of the loop.

use crate::{benchmark::Kernel, error::Result, measure::timed_loop, system::clock::Clock};

/// Times `stamps.len() - 1` batches of a kernel. Stamps are raw readings before the first batch and after each.
pub fn time_batches<K: Kernel>(kernel: &mut K, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
    timed_loop::timed(kernel, clock, batch, stamps)
}
