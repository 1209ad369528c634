//! Registry entries: what an operation registers itself with, and what users choose.

use ombx_core::{
    benchmark::{
        axis::{Axis, Named},
        entry::Benchmark,
        layout::{Layout, PAIRING, Pairs},
        preset::Preset,
    },
    error::Result,
    measure::session::Session,
};
use ombx_mpi::Make;

use crate::{
    access::Access,
    mode::{BothWays, Many, Mode, One},
    op::Op,
    sync::{SYNC, by_sync},
};

/// How the window comes by its memory.
pub const WIN: Axis = Axis {
    name: "win",
    about: "how the window is made: MPI_Win_allocate, _create, _create_dynamic or _allocate_shared",
    values: &Make::NAMES,
    default: "allocate",
    named: Named::Always,
};

/// What a passive target does while it is accessed.
pub const TARGET: Axis = Axis {
    name: "target",
    about: "what a passive target does: it waits in a barrier, or computes and seldom calls MPI",
    values: &["waiting", "computing"],
    default: "waiting",
    named: Named::IfChosen,
};

/// Whether the library is told that shared memory is welcome.
pub const HINTS: Axis = Axis {
    name: "hints",
    about: "hints (alloc_shm) for windows that the library allocates",
    values: &["on", "off"],
    default: "on",
    named: Named::IfChosen,
};

/// What the `osu_passive_*` names of OMB 3.x choose.
pub const PASSIVE: Preset = &[("sync", "lock")];

/// What operations for passive targets only take by default.
pub const FLUSH: Preset = &[("sync", "flush")];

const AXES: &[&Axis] = &[&SYNC, &WIN, &TARGET, &HINTS, &PAIRING];

/// An entry for an operation in a mode.
#[track_caller]
const fn entry<O: Op, M: Mode>(name: &'static str, about: &'static str) -> Benchmark {
    fn run<O: Op, M: Mode>(session: &mut Session<'_>) -> Result<()> {
        by_sync!(session, Access<O, .., M>)
    }
    Benchmark::custom(name, about, M::METRIC, M::METHOD, run::<O, M>)
        .layout(Layout::Pairs(Pairs::One))
        .axes(AXES)
}

/// An entry for the latency of an operation.
#[track_caller]
pub const fn latency<O: Op>(name: &'static str, about: &'static str) -> Benchmark {
    entry::<O, One>(name, about)
}

/// An entry for the bandwidth of an operation.
#[track_caller]
pub const fn bandwidth<O: Op>(name: &'static str, about: &'static str) -> Benchmark {
    entry::<O, Many>(name, about).streaming()
}

/// An entry for the bandwidth of an operation both ways at once, which needs active targets.
#[track_caller]
pub const fn both_ways<O: Op>(name: &'static str, about: &'static str) -> Benchmark {
    entry::<O, BothWays>(name, about).streaming()
}
