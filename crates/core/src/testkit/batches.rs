//! The timed loop by itself, for the benchmark of what it costs.

use crate::{clock::Clock, engine, error::Result, kernel::Kernel};

/// Times as many batches of a kernel as `stamps` has room for behind the first; stamps are raw readings of the clock.
pub fn time_batches<K: Kernel>(kernel: &mut K, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
    engine::timed(kernel, clock, batch, stamps)
}
