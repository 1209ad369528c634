//! Registry entries: what an operation registers itself with in a mode, and what users choose.

use crate::overlap::{self, TESTS};
use ombx_core::{
    benchmark::{
        axis::{Axis, Named},
        entry::Benchmark,
        layout::Layout,
        work::Metric,
    },
    pacing::{clock_sync::SYNC_HOSTS, pace::PACE},
};
use ombx_mpi::{
    Mesh,
    collective::{Call, persistent_calls_exist},
};

use crate::{
    kernel::Collective,
    mode::{Blocking, Nonblocking, Persistent},
};

/// Whether what is sent lies where it is received.
pub const IN_PLACE: Axis = Axis {
    name: "in-place",
    about: "MPI_IN_PLACE: what a rank sends lies where it receives; at the root alone where there is one",
    values: &["off", "on"],
    default: "off",
    named: Named::IfChosen,
};

/// Who is whose neighbour.
pub const TOPOLOGY: Axis = Axis {
    name: "topology",
    about: "neighbours: cartesian, a grid of two dimensions with edges; or graph, a directed one in which each rank sends to the next two",
    values: &["cartesian", "graph"],
    default: "cartesian",
    named: Named::Always,
};

/// Sizes of the OSU benchmarks.
const SIZES: &str = "1..1M";

const fn axes<C: Call>() -> &'static [&'static Axis] {
    match (C::SHAPE.has_neighbours(), C::SHAPE.in_place()) {
        (true, _) => const { &[&PACE, &SYNC_HOSTS, &TOPOLOGY] },
        (_, Some(_)) => const { &[&PACE, &SYNC_HOSTS, &IN_PLACE] },
        _ => const { &[&PACE, &SYNC_HOSTS] },
    }
}

const fn axes_with_tests<C: Call>() -> &'static [&'static Axis] {
    match (C::SHAPE.has_neighbours(), C::SHAPE.in_place()) {
        (true, _) => const { &[&PACE, &SYNC_HOSTS, &TOPOLOGY, &TESTS] },
        (_, Some(_)) => const { &[&PACE, &SYNC_HOSTS, &IN_PLACE, &TESTS] },
        _ => const { &[&PACE, &SYNC_HOSTS, &TESTS] },
    }
}

const fn shaped<C: Call>(entry: Benchmark) -> Benchmark {
    let entry = entry.layout(Layout::Everyone { least: 1 }).sizes(SIZES);
    let entry = if C::SHAPE.is_rooted() { entry.with_root() } else { entry };
    if C::SHAPE.has_messages() { entry } else { entry.without_sizes() }
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
