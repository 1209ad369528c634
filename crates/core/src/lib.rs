//! The measurement engine of ombx: what a benchmark is and how it is measured.
//!
//! The crate knows no MPI and no command line, writes no files and prints nothing. What a row is made of comes from `ombx-record`, facts and
//! counters of a host from `ombx-host`. A benchmark is a
//! [`Kernel`](benchmark::Kernel) with a [`Benchmark`](benchmark::Benchmark) entry.
//! [`run_all`](measure::runner::run_all) runs entries on a [`Team`](team::Team) of ranks and passes rows to a
//! [`Sink`](measure::session::Sink).
//!
//! # Example
//! This program measures copies in memory on one rank, without MPI and without the command line:
//!
//! ```
//! use ombx_core::{
//!     benchmark::{Benchmark, Case, Context, Kernel, Layout, Method, Metric, Registry, Work},
//!     clock::Clock,
//!     error::Result,
//!     measure::{
//!         plan::{Effort, Plan},
//!         runner::{Part, run_all},
//!         session::Memory,
//!     },
//!     team::{Alone, Fabric},
//! };
//!
//! struct CopyBytes {
//!     from: Vec<u8>,
//!     to: Vec<u8>,
//! }
//!
//! impl Kernel for CopyBytes {
//!     const METRIC: Metric = Metric::Bandwidth;
//!     const METHOD: Method = Method { timed: "one copy", untimed: "allocation", like: "STREAM copy" };
//!
//!     fn work(case: &Case) -> Work {
//!         Work { bytes: case.bytes.0, ops: 1, legs: 1 }
//!     }
//!
//!     fn open(_: &Context<'_>, case: &Case) -> Result<Self> {
//!         let bytes = case.bytes.0 as usize;
//!         Ok(CopyBytes { from: vec![1; bytes], to: vec![0; bytes] })
//!     }
//!
//!     fn active(&mut self) -> Result<()> {
//!         self.to.copy_from_slice(std::hint::black_box(&self.from));
//!         Ok(())
//!     }
//! }
//!
//! // Registers the entry in every binary that links this crate.
//! ombx_core::inventory::submit!(
//!     Benchmark::new::<CopyBytes>("acme.copy", "a copy in memory").layout(Layout::Alone).sizes("64,4K")
//! );
//!
//! fn main() -> Result<()> {
//!     let choices = vec![Registry::load()?.get("acme.copy")?];
//!     let effort = Effort::Fixed { iterations: 1000, warmup: 10 };
//!     let parts = [Part { choices, plan: Plan { effort, ..Plan::default() } }];
//!     let team = Alone(Fabric { name: "none", library: String::new() });
//!     let mut sink = Memory::default();
//!     run_all(&team, &parts, &Clock::measured(), &mut sink, vec![])?;
//!
//!     for row in &sink.rows {
//!         let summary = row.summary.as_ref().expect("the row was measured");
//!         println!("{}: {:.0} ns", row.key, summary.median);
//!     }
//!     assert_eq!(sink.rows[1].key, "acme.copy/bytes=4096");
//!     Ok(())
//! }
//! ```
//!
//! # Entries of other crates
//! [`inventory::submit!`] registers an entry when the binary starts, but only if the linker keeps its crate. A program that
//! never names a family of benchmarks must link it with `use ombx_p2p as _;`.

/// Optimisation of the engine, with which crates of benchmarks are compiled too in a release: `0` to `3`, `s` or `z`.
pub const OPT_LEVEL: &str = env!("OMBX_OPT_LEVEL");

pub mod benchmark;
pub mod clock;
#[cfg(any(test, fuzzing))]
pub mod fuzz;

/// How a benchmark is measured: the plan, sessions, timed loops, rounds of samples and the stop rule.
pub mod measure {
    pub mod alignment;
    mod background;
    pub mod collect;
    pub mod engine;
    mod load;
    pub mod open_kernel;
    pub mod overlap;
    pub mod plan;
    mod positions;
    mod rounds;
    pub mod row;
    pub mod runner;
    pub mod session;
    pub mod stop;
    pub mod timed_loop;
    pub(crate) mod workers;
}

/// Synchronisation of ranks before each sample: by a barrier, or by a start time on synchronised clocks.
pub mod pacing {
    pub mod clock_sync;
    pub mod mesh;
    pub mod one_way;
    pub mod paced_kernel;
    pub mod paced_threads;
    pub(crate) mod sample_pacer;
    pub mod start;
    pub(crate) mod windows;
}

pub mod team;

pub mod trust;

/// Two-sided communication: patterns that run over MPI and over sockets in the same loops.
pub mod two_sided {
    pub mod datagrams;
    pub mod pattern;
    pub mod received;
    pub mod request;
    pub mod scheduled_link;
    pub mod threaded;
}

/// What a benchmark and its rows are made of.
pub use ombx_record::{codec, error, event, fact, named, order, random, result, stats, unit};

/// Registry of benchmark entries, re-exported so that every crate submits to the same one.
pub use inventory;

/// Test support: the crate `ombx-testkit`, whose types would else be those of another build of this crate.
#[cfg(test)]
#[path = "../../../tests/testkit/src/lib.rs"]
pub mod testkit;
/// A dependency of the testkit.
#[cfg(test)]
use libm as _;

#[cfg(test)]
extern crate self as ombx_core;
