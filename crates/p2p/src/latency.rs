//! `p2p.latency`: a blocking ping-pong.

use crate::{PING_PONG, in_modes};
use ombx_core::{
    benchmark::{
        AxisValue,
        cold::Cache,
        memory::{BufferMemory, Staged},
        payload::Datatype,
        reduction::MESSAGE_TYPE,
    },
    two_sided::pattern::PingPong,
};
use ombx_mpi::{SendMode, Source};

ombx_core::inventory::submit! {
    in_modes::<PingPong>("p2p.latency", "blocking ping-pong between two ranks, one way")
        .iterates(PING_PONG, "t / 2").sizes("0,1..4M").axes(&[SendMode::AXIS, Source::AXIS, Cache::AXIS, Datatype::AXIS, MESSAGE_TYPE, BufferMemory::AXIS, Staged::AXIS])
        .osu("osu_latency", "OSU MPI Latency Test")
}
