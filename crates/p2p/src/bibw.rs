//! `p2p.bibw`: windows of nonblocking messages in both directions at once.

use crate::two_sided;
use ombx_core::{
    benchmark::{AxisValue, cold::Cache, payload::Datatype},
    two_sided::pattern::{BiStream, Buffers},
};
use ombx_mpi::Source;

ombx_core::inventory::submit! {
    two_sided::<BiStream>("p2p.bibw", "windows of nonblocking messages in both directions at once")
        .iterates(&["MPI_Irecv", "MPI_Isend", "MPI_Waitall"], "2 W S / t")
        .streaming().axes(&[Buffers::AXIS, Source::AXIS, Cache::AXIS, Datatype::AXIS]).osu("osu_bibw", "OSU MPI Bi-Directional Bandwidth Test")
}
