//! Constructors of registry entries: an operation calls them to register its benchmarks.

use ombx_core::{
    benchmark::{Axis, AxisValue, Benchmark, Layout, Pairing, Pairs, Preset, cold::Cache},
    error::Result,
    measure::session::Session,
};
use ombx_mpi::{Hints, WindowKind};

use crate::{
    kernel::Access,
    mode::{Bandwidth, BidirectionalBandwidth, Latency, Mode},
    operation::Operation,
    sync::{SyncKind, by_sync},
    target::Target,
};

/// Options of the `osu_passive_*` programs of OMB 3.x, whose windows are on memory of `MPI_Alloc_mem`.
pub const OSU_PASSIVE: Preset = &[("sync", "lock"), ("win", "alloc_mem")];

/// Default options of operations that need a passive target.
pub const FLUSH: Preset = &[("sync", "flush")];

const AXES: &[&Axis] =
    &[SyncKind::AXIS, WindowKind::AXIS, Target::AXIS, Hints::AXIS, Pairing::AXIS, Cache::AXIS];

/// Returns the entry of an operation in a mode.
#[track_caller]
const fn entry<O: Operation, M: Mode>(name: &'static str, about: &'static str) -> Benchmark {
    fn run<O: Operation, M: Mode>(session: &mut Session<'_>) -> Result<()> {
        by_sync!(session, Access<O, .., M>)
    }
    Benchmark::custom(name, about, M::METRIC, M::METHOD, run::<O, M>)
        .iterates(O::CALLS, M::FORMULA)
        .layout(Layout::Pairs(Pairs::One))
        .axes(AXES)
}

/// Returns the entry for the latency of an operation.
#[track_caller]
pub const fn latency<O: Operation>(name: &'static str, about: &'static str) -> Benchmark {
    entry::<O, Latency>(name, about)
}

/// Returns the entry for the bandwidth of an operation.
#[track_caller]
pub const fn bandwidth<O: Operation>(name: &'static str, about: &'static str) -> Benchmark {
    entry::<O, Bandwidth>(name, about).streaming()
}

/// Returns the entry for the bandwidth of an operation in both directions, which needs active-target synchronisation.
#[track_caller]
pub const fn bidirectional_bandwidth<O: Operation>(name: &'static str, about: &'static str) -> Benchmark {
    entry::<O, BidirectionalBandwidth>(name, about).streaming()
}
