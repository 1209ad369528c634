//! `p2p.bw`: a window of nonblocking messages and one acknowledgement.

use crate::{STREAM, in_modes};
use ombx_core::{
    benchmark::{
        AxisValue,
        cold::Cache,
        memory::{BufferMemory, Staged},
        payload::Datatype,
        reduction::MESSAGE_TYPE,
    },
    two_sided::pattern::{Buffers, Stream},
};
use ombx_mpi::{SendMode, Source};

ombx_core::inventory::submit! {
    in_modes::<Stream>("p2p.bw", "window of nonblocking sends, acknowledged once")
        .iterates(STREAM, "W S / t").streaming()
        .axes(&[Buffers::AXIS, SendMode::AXIS, Source::AXIS, Cache::AXIS, Datatype::AXIS, MESSAGE_TYPE, BufferMemory::AXIS, Staged::AXIS]).osu("osu_bw", "OSU MPI Bandwidth Test")
}
