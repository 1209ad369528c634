//! The measurement engine of ombx: what a benchmark is and how it is measured.
//!
//! It knows no MPI, no command line and no file format, and prints nothing. A benchmark is a [`benchmark::kernel::Kernel`] with a
//! [`benchmark::entry::Benchmark`] entry. [`measure`] runs it on a [`team::Team`] and passes rows to a [`measure::sink::Sink`].

pub mod benchmark;
pub mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod measure;
pub mod pacing;
pub mod result;
pub mod stats;
pub mod system;
pub mod team;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod trust;
pub mod two_sided;
pub mod unit;

/// Re-exported so that every crate submits to the same registry.
pub use inventory;
