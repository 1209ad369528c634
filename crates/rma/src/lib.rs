//! One-sided MPI benchmarks: operation x synchronisation x window, from one kernel.
//!
//! An operation is a file in `op`; [`sync`] has the synchronisations; [`access`] crosses them.

pub mod access;
pub mod op;
pub mod sync;
