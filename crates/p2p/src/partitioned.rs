//! `p2p.*_partitioned`: ping-pong and stream over partitioned messages of MPI 4.

use ombx_core::{
    benchmark::Benchmark,
    two_sided::pattern::{PatternKernel, PingPong, Stream},
};
use ombx_mpi::PartitionedChannel;

ombx_core::inventory::submit! {
    Benchmark::of::<PatternKernel<PingPong, PartitionedChannel>>("p2p.latency_partitioned", "ping-pong of messages of one partition, one way")
        .iterates(&["MPI_Start", "MPI_Pready", "MPI_Wait"], "t / 2")
        .available(PartitionedChannel::available)
}
ombx_core::inventory::submit! {
    Benchmark::of::<PatternKernel<Stream, PartitionedChannel>>("p2p.bw_partitioned", "one message with a window of partitions, each marked ready separately, acknowledged once")
        .iterates(&["MPI_Start", "MPI_Pready", "MPI_Wait"], "W S / t")
        .streaming().available(PartitionedChannel::available)
}
