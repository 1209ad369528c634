//! `p2p.latency_mt`: ping-pongs of several threads; any thread of the other rank answers.

use ombx_core::{benchmark::Benchmark, two_sided::threaded::SharedPing};
use ombx_mpi::SharedChannel;

ombx_core::inventory::submit! {
    Benchmark::threaded::<SharedPing<SharedChannel>>("p2p.latency_mt", "blocking ping-pongs of several threads, one way")
        .sizes("0,1..4M").osu("osu_latency_mt", "OSU MPI Multi-threaded Latency Test")
}
