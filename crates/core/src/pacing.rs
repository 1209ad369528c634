//! Synchronisation of ranks before each sample: by a barrier, or by a start time on synchronised clocks.

pub mod clock_sync;
pub mod mesh;
pub mod pace;
pub mod paced_kernel;
pub mod paced_threads;
mod rendezvous;
pub(crate) mod sample_pacer;
pub(crate) mod starters;
pub mod windows;
