//! Registry entries: what an operation registers itself with in a mode, and what users choose.

use crate::overlap::{self, TestCalls};
use ombx_core::{
    benchmark::{
        axis::{Axis, AxisValue},
        entry::Benchmark,
        layout::Layout,
        work::Metric,
    },
    pacing::{clock_sync::SyncHosts, pace::Pacing},
};
use ombx_mpi::{
    Mesh,
    collective::{Call, Topology, persistent_calls_exist},
};

use crate::{
    kernel::Collective,
    mode::{Blocking, Nonblocking, Persistent},
};

ombx_core::axis! {
    /// MPI_IN_PLACE: what a rank sends lies where it receives; where there is a root, at the root alone
    pub enum InPlace: "in-place", IfChosen, default Off {
        /// Separate buffers
        Off = "off",
        /// MPI_IN_PLACE
        On = "on",
    }
}

/// Sizes of the OSU benchmarks.
const SIZES: &str = "1..1M";

const fn axes<C: Call>() -> &'static [&'static Axis] {
    match (C::FLOW.has_neighbours(), C::FLOW.in_place()) {
        (true, _) => const { &[Pacing::AXIS, SyncHosts::AXIS, Topology::AXIS] },
        (_, Some(_)) => const { &[Pacing::AXIS, SyncHosts::AXIS, InPlace::AXIS] },
        _ => const { &[Pacing::AXIS, SyncHosts::AXIS] },
    }
}

const fn axes_with_tests<C: Call>() -> &'static [&'static Axis] {
    match (C::FLOW.has_neighbours(), C::FLOW.in_place()) {
        (true, _) => const { &[Pacing::AXIS, SyncHosts::AXIS, Topology::AXIS, TestCalls::AXIS] },
        (_, Some(_)) => const { &[Pacing::AXIS, SyncHosts::AXIS, InPlace::AXIS, TestCalls::AXIS] },
        _ => const { &[Pacing::AXIS, SyncHosts::AXIS, TestCalls::AXIS] },
    }
}

const fn shaped<C: Call>(entry: Benchmark) -> Benchmark {
    let entry = entry.layout(Layout::Everyone { least: 1 }).sizes(SIZES);
    let entry = if C::FLOW.is_rooted() { entry.with_root() } else { entry };
    if C::FLOW.has_messages() { entry } else { entry.without_sizes() }
}

/// An entry for an operation's blocking call.
#[track_caller]
pub const fn blocking<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    shaped::<C>(Benchmark::paced::<Collective<C, Blocking>, Mesh>(name, about)).axes(axes::<C>())
}

/// An entry for an operation's nonblocking call and what it leaves for computing.
#[track_caller]
pub const fn nonblocking<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    let run = overlap::run::<Collective<C, Nonblocking>, Mesh>;
    shaped::<C>(Benchmark::custom(name, about, Metric::Latency, overlap::METHOD, run))
        .axes(axes_with_tests::<C>())
}

/// An entry for an operation's persistent request.
#[track_caller]
pub const fn persistent<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    shaped::<C>(Benchmark::paced::<Collective<C, Persistent>, Mesh>(name, about))
        .axes(axes::<C>())
        .available(persistent_calls_exist)
}
