//! `p2p.latency`: a blocking ping-pong.

use crate::{PING_PONG, two_sided};
use ombx_core::{benchmark::AxisValue, two_sided::pattern::PingPong};
use ombx_mpi::Source;

ombx_core::inventory::submit! {
    two_sided::<PingPong>("p2p.latency", "blocking ping-pong between two ranks, one way")
        .iterates(PING_PONG, "t / 2").sizes("0,1..4M").axes(&[Source::AXIS])
        .osu("osu_latency", "OSU MPI Latency Test")
}
