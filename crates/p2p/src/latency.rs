//! `p2p.latency`: a blocking ping-pong.

use ombx_core::{
    pattern::{Over, PingPong},
    registry::Benchmark,
};
use ombx_mpi::Channel;

ombx_core::inventory::submit! {
    Benchmark::of::<Over<PingPong, Channel>>("p2p.latency", "blocking ping-pong between two ranks, one way")
        .sizes("0,1..4M").osu("osu_latency", "OSU MPI Latency Test")
}
