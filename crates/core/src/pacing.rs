//! Synchronisation of ranks before each sample: by a barrier, or by a start time on synchronised clocks.

pub mod clock_sync;
pub mod mesh;
pub mod paced_kernel;
pub mod paced_threads;
pub(crate) mod sample_pacer;
