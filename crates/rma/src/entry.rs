//! Registry entries: what an operation registers itself with, and what users choose.

use ombx_core::{
    benchmark::{
        axis::{Axis, AxisValue},
        entry::Benchmark,
        layout::{Layout, Pairing, Pairs},
        preset::Preset,
    },
    error::Result,
    measure::session::Session,
};
use ombx_mpi::{Hints, WindowKind};

use crate::{
    access::Access,
    mode::{BothWays, Many, Mode, One},
    op::Op,
    sync::{SyncKind, by_sync},
};

ombx_core::axis! {
    /// What a passive target does meanwhile
    pub enum Target: "target", IfChosen, default Waiting {
        /// It waits in a barrier
        Waiting = "waiting",
        /// It computes and seldom calls MPI
        Computing = "computing",
    }
}

/// What the `osu_passive_*` names of OMB 3.x choose.
pub const PASSIVE: Preset = &[("sync", "lock")];

/// What operations for passive targets only take by default.
pub const FLUSH: Preset = &[("sync", "flush")];

const AXES: &[&Axis] = &[SyncKind::AXIS, WindowKind::AXIS, Target::AXIS, Hints::AXIS, Pairing::AXIS];

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
