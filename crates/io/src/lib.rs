//! MPI-IO benchmarks: every rank writes to a file or reads from one.
//!
//! | module | content |
//! |---|---|
//! | [`mod@write`] | `io.write`: blocks that every rank writes |
//! | [`mod@read`] | `io.read`: blocks that every rank reads |
//! | [`mod@started`] | `io.iwrite` and `io.iread`: blocks that every rank starts to write or read, and their overlap with computation |
//! | [`mod@open`] | `io.open`: a file that every rank opens and closes |
//! | [`options`] | choices of all of them, and the directory of their files |
//!
//! The first iteration of a sample begins at the start of the file, so that the file of a case has as many bytes as one iteration
//! moves: ranks x operations in flight x bytes of a block.
//!
//! # Example
//! The time of a write of 1 MiB by each rank to a file below `/tmp`. Start it with `mpiexec -n 2`.
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
//! use ombx_io::options::DIRECTORY;
//! use ombx_mpi::Mpi;
//!
//! fn main() -> Result<()> {
//!     let mpi = Mpi::start(Threading::Single)?;
//!     let registry = Registry::load()?;
//!     let found = registry.all().iter().find(|bench| bench.name == "io.write");
//!     let choice = Choice { bench: found.expect("the benchmark is linked"), preset: &[] };
//!     let mut plan = Plan { sizes: Some(parse_sizes("1M")?), ..Plan::default() };
//!     plan.chosen.set(DIRECTORY.name, ["/tmp"]);
//!     let mut rows = Memory::default();
//!     run_all(mpi.team(), &[Part { choices: vec![choice], plan }], &Clock::measured(), &mut rows, Vec::new())?;
//!     // Rank 0 has the rows.
//!     for row in rows.rows {
//!         println!("{}: {:?}", row.key, row.summary.map(|summary| summary.median));
//!     }
//!     Ok(())
//! }
//! ```

pub mod open;
pub mod options;
pub mod read;
pub mod started;
pub mod write;
