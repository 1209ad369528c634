//! `p2p.bw`: a window of nonblocking messages and one receipt.

use ombx_core::{
    pattern::{BUFFERS, Over, Stream},
    registry::Benchmark,
};
use ombx_mpi::Channel;

ombx_core::inventory::submit! {
    Benchmark::of::<Over<Stream, Channel>>("p2p.bw", "window of nonblocking sends, acknowledged once")
        .streaming().axes(&[&BUFFERS]).osu("osu_bw", "OSU MPI Bandwidth Test")
}
