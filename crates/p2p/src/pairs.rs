//! `p2p.mbw_mr` and `p2p.multi_latency`: many pairs of ranks at the same time.

use crate::{PING_PONG, STREAM, in_modes};
use ombx_core::{
    benchmark::{
        Layout, Pairing, Pairs, ParameterValue,
        cold::Cache,
        memory::{BufferMemory, Staged},
        payload::Datatype,
        reduction::MESSAGE_TYPE,
    },
    two_sided::pattern::{Buffers, PingPong, Stream},
};
use ombx_mpi::{SendMode, Source};

ombx_core::inventory::submit! {
    in_modes::<Stream>("p2p.mbw_mr", "bandwidth and message rate of many pairs at the same time")
        .iterates(STREAM, "P W S / t, and P W / t messages a second; t from the first start to the last end")
        .streaming().layout(Layout::Pairs(Pairs::Most)).with(&[Buffers::PARAMETER, Pairing::PARAMETER, SendMode::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER, Staged::PARAMETER])
        .osu("osu_mbw_mr", "OSU MPI Multiple Bandwidth / Message Rate Test")
}
ombx_core::inventory::submit! {
    in_modes::<PingPong>("p2p.multi_latency", "blocking ping-pongs of many pairs at the same time, one way")
        .iterates(PING_PONG, "t / 2; t from the first start to the last end")
        .layout(Layout::Pairs(Pairs::Most)).with(&[Pairing::PARAMETER, SendMode::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER, Staged::PARAMETER])
        .osu("osu_multi_lat", "OSU MPI Multi Latency Test")
}
