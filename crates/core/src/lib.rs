//! The measurement engine of ombx: what runs, what is chosen, what is measured and what is kept.
//!
//! It knows no MPI, no arguments and prints nothing. A benchmark is a [`kernel::Kernel`] with a [`registry::Benchmark`]
//! entry; the [`engine`] runs it on a [`team::Team`] and hands rows to a [`sink::Sink`].

pub mod acked;
pub mod axis;
pub mod broadcast;
pub mod case;
pub mod clock;
mod collect;
pub mod compare;
pub mod compute;
mod crew;
pub mod engine;
pub mod env;
pub mod error;
pub mod fan;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod host;
pub mod host_name;
pub mod kernel;
pub mod layout;
pub mod links;
mod measure;
pub mod mesh;
pub mod overlap;
pub mod pace;
mod paced;
pub mod pattern;
pub mod payload;
pub mod phases;
pub mod placement;
pub mod plan;
pub mod registry;
pub mod render;
pub mod result;
pub mod root;
pub mod runner;
pub mod schedule;
mod session;
mod shuffle;
pub mod sink;
mod starts;
pub mod stats;
pub mod stop;
pub mod sync;
pub mod team;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod threaded;
pub mod threads;
pub mod tree;
pub mod trust;
pub mod unit;
pub mod verdict;
pub mod wire;

/// Re-exported so that every crate submits to the same registry.
pub use inventory;
