//! One-sided MPI benchmarks: operation x synchronisation x window, from one kernel.
//!
//! | module | content |
//! |---|---|
//! | [`op`] | the operations with their registry entries, and the trait that they implement |
//! | [`sync`] | the synchronisations: `pscw`, `fence`, `lock` and others |
//! | [`kernel`] | the kernel that combines an operation, a synchronisation and a mode (latency, bandwidth) |
//! | [`memory`], [`passive`] | the memory of an operation on a window, the activity of a passive target |
//! | [`many`] | accesses to several ranks, and the flush or fence that completes them |
//! | [`entry`] | constructors of registry entries |
//!
//! # Example
//! The latency of `MPI_Put` with the default synchronisation and window. Start it with `mpiexec -n 2`.
//! ```no_run
//! use ombx_core::{
//!     benchmark::{Choice, Registry, Threading},
//!     error::Result,
//!     measure::{
//!         plan::Plan,
//!         runner::{Part, run_all},
//!         session::Memory,
//!     },
//!     unit::parse_sizes,
//!     clock::Clock,
//! };
//! use ombx_mpi::Mpi;
//! use ombx_rma as _; // links the crate, which registers its benchmarks
//!
//! fn main() -> Result<()> {
//!     let mpi = Mpi::start(Threading::Single)?;
//!     let registry = Registry::load()?;
//!     let found = registry.all().iter().find(|bench| bench.name == "rma.put_latency");
//!     let choice = Choice { bench: found.expect("the benchmark is linked"), preset: &[] };
//!     let plan = Plan { sizes: Some(parse_sizes("8,64K")?), ..Plan::default() };
//!     let mut rows = Memory::default();
//!     run_all(mpi.team(), &[Part { choices: vec![choice], plan }], &Clock::measured(), &mut rows, Vec::new())?;
//!     // Rank 0 has the rows.
//!     for row in rows.rows {
//!         println!("{}: {:?}", row.key, row.summary.map(|summary| summary.median));
//!     }
//!     Ok(())
//! }
//! ```

mod combined;
pub mod entry;
mod incast;
pub mod kernel;
pub mod many;
pub mod memory;
pub mod op;
pub mod passive;
pub mod sync;
