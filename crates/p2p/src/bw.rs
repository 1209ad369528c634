//! `p2p.bw`: a window of nonblocking messages and one acknowledgement.

use crate::{STREAM, in_modes};
use ombx_core::{
    benchmark::{
        ParameterValue,
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
        .with(&[Buffers::PARAMETER, SendMode::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER, Staged::PARAMETER]).osu("osu_bw", "OSU MPI Bandwidth Test")
}
