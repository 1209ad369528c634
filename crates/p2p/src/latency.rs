//! `p2p.latency`: a blocking ping-pong.

use crate::{PING_PONG, in_modes};
use ombx_core::{
    benchmark::{
        ParameterValue,
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
        .iterates(PING_PONG, "t / 2").sizes("0,1..4M").with(&[SendMode::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER, Staged::PARAMETER])
        .osu("osu_latency", "OSU MPI Latency Test")
}
