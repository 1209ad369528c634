//! `p2p.latency_mt`: ping-pongs of several threads; any thread of the other rank answers.

use crate::PING_PONG;
use ombx_core::{
    benchmark::{Benchmark, ParameterValue, derived, memory::BufferMemory, reduction::MESSAGE_TYPE},
    two_sided::threaded::SharedPing,
};
use ombx_mpi::SharedChannel;

ombx_core::inventory::submit! {
    Benchmark::threaded::<SharedPing<SharedChannel>>("p2p.latency_mt", "blocking ping-pongs of several threads, one way")
        .iterates(PING_PONG, "t / 2, over the samples of all threads").sizes("0,1..4M").with(&[MESSAGE_TYPE, BufferMemory::PARAMETER]).made_of(derived::block_bytes, derived::check)
        .osu("osu_latency_mt", "OSU MPI Multi-threaded Latency Test")
}
