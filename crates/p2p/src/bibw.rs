//! `p2p.bibw`: a window of nonblocking messages each way at once.

use ombx_core::{
    pattern::{BUFFERS, BiStream, Over},
    registry::Benchmark,
};
use ombx_mpi::Channel;

ombx_core::inventory::submit! {
    Benchmark::of::<Over<BiStream, Channel>>("p2p.bibw", "windows of nonblocking messages both ways at once")
        .streaming().axes(&[&BUFFERS]).osu("osu_bibw", "OSU MPI Bi-Directional Bandwidth Test")
}
