//! Two-sided MPI benchmarks: core's patterns over MPI channels.

mod bibw;
mod bw;
mod fan;
mod latency;
mod latency_mp;
mod latency_mt;
mod link;
mod pairs;
mod partitioned;
mod persistent;

use ombx_core::{
    benchmark::entry::Benchmark,
    error::Result,
    measure::{engine::run_either, session::Session},
    two_sided::pattern::{Pattern, PatternKernel},
};
use ombx_mpi::{Channel, Large};

/// A pattern over messages of any length: those that an `int` cannot count go by MPI 4's large-count calls.
#[track_caller]
const fn two_sided<P: Pattern>(name: &'static str, about: &'static str) -> Benchmark {
    Benchmark::either::<PatternKernel<P, Channel>, PatternKernel<P, Channel<Large>>>(name, about)
}

/// The same, as a part of a benchmark.
fn run_two_sided<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    run_either::<PatternKernel<P, Channel>, PatternKernel<P, Channel<Large>>>(session)
}
