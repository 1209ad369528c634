//! `p2p.bibw`: windows of nonblocking messages in both directions at once.

use crate::in_modes;
use ombx_core::{
    benchmark::{
        Case, ParameterValue,
        cold::Cache,
        derived,
        memory::{BufferMemory, Staged},
        payload::Datatype,
        reduction::MESSAGE_TYPE,
    },
    measure::plan::Plan,
    two_sided::pattern::{BiStream, Buffers},
};
use ombx_mpi::{SendMode, Source};

/// Refuses ready sends: neither rank can know that the other has posted its receives.
fn check(case: &Case, plan: &Plan) -> Result<(), String> {
    match case.get() {
        SendMode::Ready => Err("--send ready: sends in both directions at once may precede their receives; choose --send standard, \
                                synchronous or buffered"
            .to_owned()),
        _ => derived::check(case, plan),
    }
}

ombx_core::inventory::submit! {
    in_modes::<BiStream>("p2p.bibw", "windows of nonblocking messages in both directions at once")
        .iterates(&["MPI_Irecv", "MPI_Isend", "MPI_Waitall"], "2 W S / t").streaming().made_of(derived::block_bytes, check)
        .with(&[Buffers::PARAMETER, SendMode::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER, Staged::PARAMETER])
        .osu("osu_bibw", "OSU MPI Bi-Directional Bandwidth Test")
}
