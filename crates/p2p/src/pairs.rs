//! `p2p.mbw_mr` and `p2p.multi_latency`: many pairs of ranks at the same time.

use ombx_core::{
    layout::{Layout, PAIRING, Pairs},
    pattern::{BUFFERS, Over, PingPong, Stream},
    registry::Benchmark,
};
use ombx_mpi::Channel;

ombx_core::inventory::submit! {
    Benchmark::of::<Over<Stream, Channel>>("p2p.mbw_mr", "bandwidth and message rate of many pairs at the same time")
        .streaming().layout(Layout::Pairs(Pairs::Most)).axes(&[&BUFFERS, &PAIRING])
        .osu("osu_mbw_mr", "OSU MPI Multiple Bandwidth / Message Rate Test")
}
ombx_core::inventory::submit! {
    Benchmark::of::<Over<PingPong, Channel>>("p2p.multi_latency", "blocking ping-pongs of many pairs at the same time, one way")
        .layout(Layout::Pairs(Pairs::Most)).axes(&[&PAIRING])
        .osu("osu_multi_lat", "OSU MPI Multi Latency Test")
}
