//! The timed loop by itself, for the benchmark of what it costs.

use crate::{benchmark::kernel::Kernel, error::Result, measure::timed_loop, system::clock::Clock};

/// Times as many batches of a kernel as `stamps` has room for behind the first; stamps are raw readings of the clock.
pub fn time_batches<K: Kernel>(kernel: &mut K, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
    timed_loop::timed(kernel, clock, batch, stamps)
}
