//! Collective MPI benchmarks: operation x mode, from one kernel.
//!
//! What an operation moves and how it is called is in `ombx_mpi::collective`; here [`content`] knows what must stand in its
//! buffers, [`mode`] how it is completed, [`kernel`] crosses them, and [`blocking`], [`nonblocking`] and [`persistent`] have
//! a line for each. [`broadcast`] has other ways to time a broadcast.

pub mod broadcast;
pub mod content;
mod entry;
pub mod kernel;
pub mod mode;
pub mod operations;
pub mod overlap;
