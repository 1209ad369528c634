//! `p2p.*_partitioned`: ping-pong and stream over partitioned messages of MPI 4.

use ombx_core::{
    benchmark::{
        Benchmark, ParameterValue, cold::Cache, derived, memory::BufferMemory, reduction::MESSAGE_TYPE,
    },
    two_sided::pattern::{Pattern, PatternKernel, PingPong, Stream},
};
use ombx_mpi::PartitionedChannel;

use crate::run_cached;

/// Returns the entry of a pattern over partitioned messages.
#[track_caller]
const fn partitioned<P: Pattern>(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
) -> Benchmark {
    Benchmark::custom(name, about, P::METRIC, P::METHOD, run_cached::<PatternKernel<P, PartitionedChannel>>)
        .iterates(&["MPI_Start", "MPI_Pready", "MPI_Wait"], formula)
        .with(&[Cache::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
        .made_of(derived::block_bytes, derived::check)
        .available(PartitionedChannel::available)
}

ombx_core::inventory::submit! {
    partitioned::<PingPong>("p2p.latency_partitioned", "ping-pong of messages of one partition, one way", "t / 2")
}
ombx_core::inventory::submit! {
    partitioned::<Stream>("p2p.bw_partitioned", "one message with a window of partitions, each marked ready separately, acknowledged once", "W S / t").streaming()
}
