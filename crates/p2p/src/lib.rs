//! Two-sided MPI benchmarks: core's patterns over an MPI channel.

mod bw;
mod latency;
