//! Two-sided MPI benchmarks: core's patterns over MPI channels.

mod bibw;
mod bw;
mod fan;
mod latency;
mod latency_mp;
mod latency_mt;
mod link;
mod pairs;
mod persistent;
