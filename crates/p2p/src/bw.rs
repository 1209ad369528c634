//! `p2p.bw`: a window of nonblocking messages and one receipt.

use crate::two_sided;
use ombx_core::two_sided::pattern::{BUFFERS, Stream};

ombx_core::inventory::submit! {
    two_sided::<Stream>("p2p.bw", "window of nonblocking sends, acknowledged once")
        .streaming().axes(&[&BUFFERS]).osu("osu_bw", "OSU MPI Bandwidth Test")
}
