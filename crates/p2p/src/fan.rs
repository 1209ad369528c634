//! `p2p.fan_in` and `p2p.fan_out`: many ranks to one, and one to many.

use ombx_core::{
    fan::{Fan, In, Out},
    layout::Layout,
    pattern::BUFFERS,
    registry::Benchmark,
};
use ombx_mpi::Star;

ombx_core::inventory::submit! {
    Benchmark::of::<Fan<In, Star>>("p2p.fan_in", "windows of messages from every other rank to the first")
        .streaming().layout(Layout::Star).axes(&[&BUFFERS])
        .osu("osu_bw_fan_in", "OSU MPI Bandwidth Congestion In Test")
}
ombx_core::inventory::submit! {
    Benchmark::of::<Fan<Out, Star>>("p2p.fan_out", "windows of messages from the first rank to every other")
        .streaming().layout(Layout::Star).axes(&[&BUFFERS])
        .osu("osu_bw_fan_out", "OSU MPI Bandwidth Congestion Out Test")
}
