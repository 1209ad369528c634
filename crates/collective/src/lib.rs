//! Collective MPI benchmarks: each operation in a blocking, a nonblocking and a persistent mode.
//!
//! [`operations`] is the table of operations; each line registers three benchmarks. [`kernel`] combines an operation with a
//! mode, and [`content`] computes the expected data. [`broadcast`] has other ways to time a broadcast,
//! `collective.reduce_local` communicates with no rank, and `collective.init` is the time that MPI takes to start. `ombx_mpi::collective` calls MPI.
//!
//! The benchmarks are registered in every program that names this crate:
//!
//! ```
//! use ombx_collective::operations::OPERATIONS;
//! use ombx_core::benchmark::Registry;
//!
//! let bcast = OPERATIONS.iter().find(|operation| operation.name == "bcast").unwrap();
//! assert_eq!(bcast.benchmarks().map(|entry| entry.name),
//!     ["collective.bcast", "collective.ibcast", "collective.bcast_persistent"]);
//! assert!(bcast.flow.is_rooted());
//!
//! let registry = Registry::load()?;
//! assert!(registry.all().iter().any(|entry| entry.name == bcast.persistent.name));
//! # Ok::<(), ombx_core::error::Error>(())
//! ```
//!
//! To run one without the command line, see the example of `ombx-p2p`.

pub mod broadcast;
pub mod content;
mod entry;
pub mod kernel;
mod local;
pub mod operations;
