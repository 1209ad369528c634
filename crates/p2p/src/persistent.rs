//! `p2p.*_persistent`: ping-pong and streams over persistent requests.

use ombx_core::{
    benchmark::{
        ParameterValue, cold::Cache, memory::BufferMemory, payload::Datatype, reduction::MESSAGE_TYPE,
    },
    two_sided::pattern::{BiStream, Buffers, PingPong, Stream},
};
use ombx_mpi::{PersistentChannel, Source};

use crate::over;

ombx_core::inventory::submit! {
    over::<PingPong, PersistentChannel>("p2p.latency_persistent", "ping-pong over persistent requests, one way")
        .iterates(&["MPI_Start", "MPI_Wait"], "t / 2").sizes("0,1..4M")
        .with(&[Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER]).osu("osu_latency_persistent", "OSU MPI Latency Persistent Test")
}
ombx_core::inventory::submit! {
    over::<Stream, PersistentChannel>("p2p.bw_persistent", "window of persistent sends, acknowledged once")
        .iterates(&["MPI_Startall", "MPI_Waitall", "MPI_Start", "MPI_Wait"], "W S / t").streaming()
        .with(&[Buffers::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER]).osu("osu_bw_persistent", "OSU MPI Bandwidth Persistent Test")
}
ombx_core::inventory::submit! {
    over::<BiStream, PersistentChannel>("p2p.bibw_persistent", "windows of persistent messages in both directions at once")
        .iterates(&["MPI_Startall", "MPI_Waitall"], "2 W S / t").streaming()
        .with(&[Buffers::PARAMETER, Source::PARAMETER, Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
        .osu("osu_bibw_persistent", "OSU MPI Bi-Directional Bandwidth Persistent Test")
}
