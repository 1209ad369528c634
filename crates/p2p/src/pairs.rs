//! `p2p.mbw_mr` and `p2p.multi_latency`: many pairs of ranks at the same time.

use crate::two_sided;
use ombx_core::{
    benchmark::{AxisValue, Layout, Pairing, Pairs},
    two_sided::pattern::{Buffers, PingPong, Stream},
};

ombx_core::inventory::submit! {
    two_sided::<Stream>("p2p.mbw_mr", "bandwidth and message rate of many pairs at the same time")
        .streaming().layout(Layout::Pairs(Pairs::Most)).axes(&[Buffers::AXIS, Pairing::AXIS])
        .osu("osu_mbw_mr", "OSU MPI Multiple Bandwidth / Message Rate Test")
}
ombx_core::inventory::submit! {
    two_sided::<PingPong>("p2p.multi_latency", "blocking ping-pongs of many pairs at the same time, one way")
        .layout(Layout::Pairs(Pairs::Most)).axes(&[Pairing::AXIS])
        .osu("osu_multi_lat", "OSU MPI Multi Latency Test")
}
