//! One-sided MPI benchmarks: operation x synchronisation x window, from one kernel.
//!
//! An operation is a file in [`op`]; [`sync`] has the synchronisations, [`mode`] what an iteration consists of, [`access`] the
//! kernel that crosses them, [`entry`] what an operation registers itself with.

pub mod access;
pub mod entry;
pub mod memory;
pub mod mode;
pub mod op;
pub mod sync;
