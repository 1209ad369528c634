//! Two-sided MPI benchmarks: the patterns of `ombx_core::two_sided` over MPI.
//!
//! Each benchmark is an entry that registers itself when this crate is linked. The linker drops a crate that a program never
//! names, so name it: `use ombx_p2p as _;` is enough.
//!
//! ```
//! use ombx_core::benchmark::Registry;
//! use ombx_p2p as _;
//!
//! assert!(Registry::load()?.get("p2p.latency").is_ok());
//! # Ok::<(), ombx_core::error::Error>(())
//! ```
//!
//! # Example
//! A program that measures the latency without the command line. Start it with `mpiexec -n 2`.
//!
//! ```no_run
//! use ombx_core::{
//!     benchmark::{Registry, Threading},
//!     error::Result,
//!     measure::{
//!         plan::Plan,
//!         runner::{self, Part},
//!         session::Memory,
//!     },
//!     unit::parse_sizes,
//!     clock::Clock,
//! };
//! use ombx_p2p::Mpi;
//!
//! fn main() -> Result<()> {
//!     // A panic on one rank must end the others, which would wait for it.
//!     Mpi::abort_on_panic();
//!     let mpi = Mpi::start(Threading::Single)?;
//!     let choices = vec![Registry::load()?.get("p2p.latency")?];
//!     let plan = Plan { sizes: Some(parse_sizes("8,1K")?), ..Plan::default() };
//!     let mut sink = Memory::default();
//!     let part = Part { choices, plan };
//!     runner::run_all(mpi.team(), &[part], &Clock::measured(), &mut sink, vec![])?;
//!     // Only the sink of rank 0 receives rows.
//!     for row in &sink.rows {
//!         let median_ns = row.summary.as_ref().map(|summary| summary.median);
//!         println!("{}: {median_ns:?} ns, {:?}", row.key, row.check);
//!     }
//!     Ok(())
//! }
//! ```

mod fan;
mod neighbours;
mod random;
mod threads;
mod two_sided;

use ombx_core::{
    benchmark::{
        Benchmark,
        cold::{Cold, run_cached},
        derived::{self, by_datatype},
        memory::{self, Cache},
    },
    error::Result,
    measure::{engine::run_either, session::Session},
    two_sided::pattern::{Link, Pattern, PatternKernel},
};
pub use ombx_mpi::Mpi;
use ombx_mpi::{Buffered, Channel, Large, ModeChannel, ReadyChannel, SendMode, Staged, Synchronous};

/// Calls of a ping-pong.
const PING_PONG: &[&str] = &["MPI_Send", "MPI_Recv"];
/// Calls of a window of messages and its acknowledgement.
const STREAM: &[&str] = &["MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Send", "MPI_Recv"];

/// Returns the entry of a pattern over a link that may have derived datatypes.
#[track_caller]
const fn over<P: Pattern, L: Link>(name: &'static str, about: &'static str) -> Benchmark {
    Benchmark::custom(name, about, P::METRIC, P::METHOD, |session| {
        by_datatype(session, run_cached::<PatternKernel<P, L>>)
    })
    .made_of(derived::block_bytes, derived::check)
}

/// Returns the entry of a pattern whose sends have a mode. Standard messages longer than an `int` can count use the large-count calls of
/// MPI 4.
#[track_caller]
const fn in_modes<P: Pattern>(name: &'static str, about: &'static str) -> Benchmark {
    Benchmark::custom(name, about, P::METRIC, P::METHOD, |session| by_datatype(session, run_modes::<P>))
        .made_of(derived::block_bytes, derived::check)
}

/// Runs a pattern in each selected mode of sends.
fn run_modes<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, mode| match mode {
        SendMode::Standard => run_two_sided::<P>(session),
        SendMode::Synchronous => run_cached::<PatternKernel<P, ModeChannel<Synchronous>>>(session),
        SendMode::Buffered => run_cached::<PatternKernel<P, ModeChannel<Buffered>>>(session),
        SendMode::Ready => run_cached::<PatternKernel<P, ReadyChannel>>(session),
    })
}

/// Runs a pattern whose sends have the standard mode.
fn run_two_sided<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, staged| match staged {
        memory::Staged::Off => run_direct::<P>(session),
        memory::Staged::On => {
            run_either::<PatternKernel<P, Staged<Channel>>, PatternKernel<P, Staged<Channel<Large>>>>(session)
        }
    })
}

/// Runs a pattern whose buffers are those of the library's calls.
fn run_direct<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, cache| match cache {
        Cache::Warm => run_either::<PatternKernel<P, Channel>, PatternKernel<P, Channel<Large>>>(session),
        Cache::Cold => {
            run_either::<Cold<PatternKernel<P, Channel>>, Cold<PatternKernel<P, Channel<Large>>>>(session)
        }
    })
}
