//! Registry entries of collective operations: axes, sizes and kernel of each mode.

use ombx_core::{
    benchmark::{Axis, AxisValue, Benchmark, ElementType, Layout, Metric, ReductionOp, reduction},
    pacing::{clock_sync::SyncHosts, pace::Pacing},
};
use ombx_mpi::{
    Mesh,
    collective::{Call, Participants, ReductionScope, Topology, persistent_calls_exist},
};

use crate::{
    broadcast::{run_bcast, tree::Algorithm},
    kernel::{Collective, InPlace},
    mode::{Blocking, Nonblocking, Persistent},
    overlap::{self, TestCalls},
};

/// Default message sizes, as in the OSU benchmarks. Reductions leave out those that are no multiple of the element.
pub(crate) const SIZES: &str = "1..1M";

/// Figure of an operation that each rank calls once in an iteration.
pub(crate) const FORMULA: &str =
    "t of the slowest rank; with --pace window, from the first start to the last end";
/// Figures of an operation that overlaps with computation.
const OVERLAP: &str = "t of the slowest rank; overlap_percent = max(0, 100 - 100 (t - compute) / pure)";

/// Returns the entry of the blocking call.
#[track_caller]
pub(crate) const fn blocking<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    let entry = paced::<C>(Benchmark::paced::<Collective<C, Blocking>, Mesh>(name, about));
    let entry = entry.iterates(const { &[C::NAME] }, FORMULA);
    match is_broadcast::<C>() {
        true => Benchmark { run: run_bcast, ..entry }.axes(&[Pacing::AXIS, SyncHosts::AXIS, Algorithm::AXIS]),
        false => entry,
    }
}

/// Returns the entry of the persistent request.
#[track_caller]
pub(crate) const fn persistent<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    paced::<C>(Benchmark::paced::<Collective<C, Persistent>, Mesh>(name, about))
        .iterates(&["MPI_Start", "MPI_Wait"], FORMULA)
        .available(persistent_calls_exist)
}

/// Returns the entry of the nonblocking call, which also measures overlap.
#[track_caller]
pub(crate) const fn nonblocking<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    let run = overlap::run::<Collective<C, Nonblocking>, Mesh>;
    shaped::<C>(Benchmark::custom(name, about, Metric::Latency, overlap::METHOD, run))
        .iterates(const { &[C::START, "MPI_Test", "MPI_Wait"] }, OVERLAP)
        .axes(axes_with_tests::<C>())
}

/// Completes the entry of a kernel that is paced and whose time may be compared with one message.
const fn paced<C: Call>(entry: Benchmark) -> Benchmark {
    let entry = shaped::<C>(entry).axes(axes::<C>());
    if is_broadcast::<C>() { entry.above_one_way() } else { entry }
}

const fn is_broadcast<C: Call>() -> bool {
    matches!(C::FLOW.receives.who, Participants::Others)
}

const fn shaped<C: Call>(entry: Benchmark) -> Benchmark {
    let entry = entry.layout(Layout::Everyone { least: 1 }).sizes(SIZES);
    let entry = match reduces::<C>() {
        true => entry.made_of(reduction::element_bytes, reduction::check_case),
        false => entry,
    };
    let entry = if C::FLOW.is_rooted() { entry.with_root() } else { entry };
    if C::FLOW.has_messages() { entry } else { entry.without_sizes() }
}

const fn reduces<C: Call>() -> bool {
    !matches!(C::FLOW.reduces, ReductionScope::Nothing)
}

const fn axes<C: Call>() -> &'static [&'static Axis] {
    match (C::FLOW.has_neighbours(), C::FLOW.in_place()) {
        _ if reduces::<C>() => {
            const { &[Pacing::AXIS, SyncHosts::AXIS, ElementType::AXIS, ReductionOp::AXIS, InPlace::AXIS] }
        }
        (true, _) => const { &[Pacing::AXIS, SyncHosts::AXIS, Topology::AXIS] },
        (_, Some(_)) => const { &[Pacing::AXIS, SyncHosts::AXIS, InPlace::AXIS] },
        _ => const { &[Pacing::AXIS, SyncHosts::AXIS] },
    }
}

const fn axes_with_tests<C: Call>() -> &'static [&'static Axis] {
    match (C::FLOW.has_neighbours(), C::FLOW.in_place()) {
        _ if reduces::<C>() => {
            const {
                &[
                    Pacing::AXIS,
                    SyncHosts::AXIS,
                    ElementType::AXIS,
                    ReductionOp::AXIS,
                    InPlace::AXIS,
                    TestCalls::AXIS,
                ]
            }
        }
        (true, _) => const { &[Pacing::AXIS, SyncHosts::AXIS, Topology::AXIS, TestCalls::AXIS] },
        (_, Some(_)) => const { &[Pacing::AXIS, SyncHosts::AXIS, InPlace::AXIS, TestCalls::AXIS] },
        _ => const { &[Pacing::AXIS, SyncHosts::AXIS, TestCalls::AXIS] },
    }
}
