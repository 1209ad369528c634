//! Registry entries of collective operations: parameters, sizes and kernel of each mode.

use ombx_core::{
    benchmark::{
        Benchmark, Case, ElementType, Groups, Imbalance, Kernel, Layout, Method, Metric, Parameter,
        ParameterValue, ReductionOp, Root, Topology,
        cold::{Cold, Movable},
        derived::{self, by_datatype},
        memory::{BufferMemory, Cache, Staged},
        neighbourhood,
        payload::Datatype,
        reduction::{self, MESSAGE_TYPE},
    },
    error::Result,
    measure::{
        overlap::{self, Computation, Overlappable, Parts, TestCalls},
        plan::Plan,
        session::Session,
    },
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, paced_threads::One, start::Pacing},
};
use ombx_mpi::{
    Mesh, OnThread,
    collective::{Call, Operation, Participants, persistent_calls_exist},
};

use crate::{
    broadcast::{kernel::Algorithm, run_bcast},
    kernel::{self, Blocking, CallForm, Collective, InPlace, Nonblocking, Persistent},
};

/// Default message sizes, as in the OSU benchmarks. Reductions leave out those that are no multiple of the element.
pub(crate) const SIZES: &str = "1..1M";

/// Figure of an operation that each rank calls once in an iteration.
pub(crate) const FORMULA: &str =
    "t of the slowest rank; with --pace window, from the first start to the last end";
/// Figures of an operation that overlaps with computation.
const OVERLAP: &str =
    "t of the slowest rank; overlap_percent = max(0, 100 - 100 (t - compute) / pure), unless --overlap none";

/// Returns the entry of the blocking call.
#[track_caller]
pub(crate) const fn blocking<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    let entry = Benchmark::custom(name, about, Metric::Latency, Blocking::METHOD, |session| {
        by_datatype(session, run_blocking::<C>)
    });
    let entry = paced::<C>(entry);
    let entry = entry.iterates(const { &[C::NAME] }, FORMULA);
    if is_broadcast::<C>() {
        let run: fn(&mut Session<'_>) -> Result<()> = |session| by_datatype(session, run_bcast);
        Benchmark { run, ..entry }.made_of(derived::block_bytes, check_broadcast).with(&[
            Pacing::PARAMETER,
            SyncHosts::PARAMETER,
            Datatype::PARAMETER,
            MESSAGE_TYPE,
            Algorithm::PARAMETER,
            Cache::PARAMETER,
            BufferMemory::PARAMETER,
            Staged::PARAMETER,
        ])
    } else {
        with_parameters::<C>(entry, &[], &[Cache::PARAMETER, BufferMemory::PARAMETER, Staged::PARAMETER])
    }
}

/// Returns an error with the reason if a broadcast by ombx is to have groups, or a datatype other than bytes.
pub(crate) fn check_broadcast(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    check_datatype(case, plan)?;
    let option = match case.get() {
        Datatype::Contiguous if !case.get::<Groups>().is_one() => Some("groups"),
        Datatype::Contiguous => (reduction::message_type(case) != ElementType::Byte).then_some("type"),
        _ => Some("datatype"),
    };
    let option = option.or((!case.get::<BufferMemory>().is_host()).then_some("memory"));
    match option.filter(|_| case.get::<Algorithm>() != Algorithm::Library) {
        None => Ok(()),
        Some(option) => Err(format!(
            "--{option} is for broadcasts of the library: choose --by library, or leave out --{option}"
        )),
    }
}

/// Returns an error with the reason if blocks of a derived datatype are to be unequal or to stay in place.
fn check_datatype(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    derived::check(case, plan)?;
    neighbourhood::check(case, plan)?;
    match case.get() {
        Datatype::Contiguous => Ok(()),
        _ if case.get::<InPlace>() == InPlace::On => {
            Err("--in-place on is for contiguous blocks: choose --datatype contiguous, or --in-place off"
                .to_owned())
        }
        _ if !case.get::<Imbalance>().is_none() => Err(
            "--imbalance is for contiguous blocks: choose --datatype contiguous, or leave out --imbalance"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Returns the entry of the persistent request.
#[track_caller]
pub(crate) const fn persistent<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    let method = <Collective<C, Persistent> as Kernel>::METHOD;
    let entry = Benchmark::custom(name, about, Metric::Latency, method, |session| {
        by_datatype(session, run_cached::<Collective<C, Persistent>>)
    });
    let entry =
        paced::<C>(entry).iterates(&["MPI_Start", "MPI_Wait"], FORMULA).available(persistent_calls_exist);
    with_parameters::<C>(entry, &[], &[Cache::PARAMETER, BufferMemory::PARAMETER])
}

/// Returns the entry of the nonblocking call, which also measures overlap.
#[track_caller]
pub(crate) const fn nonblocking<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    let entry = Benchmark::custom(name, about, Metric::Latency, overlap::METHOD, |session| {
        by_datatype(session, run_nonblocking::<Collective<C, Nonblocking>>)
    });
    let entry = shaped::<C>(entry).iterates(const { &[C::START, "MPI_Test", "MPI_Wait"] }, OVERLAP);
    let overlap = [TestCalls::PARAMETER, Parts::PARAMETER, Computation::PARAMETER];
    with_parameters::<C>(entry, &overlap, &[Cache::PARAMETER, BufferMemory::PARAMETER])
}

/// What is timed of an operation that several threads call.
const BY_THREADS: Method = Method {
    timed: "on each thread of every rank, one blocking call on a communicator of its own; a sample is from \
            the first start of a thread to the last end, on the slowest rank",
    untimed: "synchronising threads and ranks between iterations; communicators, buffers, filling and checking",
    like: "the benchmark of IMB-MT of the same name, which prints minimum, maximum and mean over threads",
};

/// Returns the entry of the blocking call by several threads of each rank.
#[track_caller]
pub(crate) const fn by_threads<C: Call>(name: &'static str, about: &'static str) -> Benchmark {
    type OfThread<C> = Collective<C, Blocking, OnThread<Operation<C>>>;
    let entry = Benchmark::matched_threads::<OfThread<C>, One>(name, about, BY_THREADS);
    let entry = entry.iterates(
        const { &[C::NAME] },
        "t of the slowest rank, from the first start of its threads to their last end",
    );
    let entry = entry.layout(Layout::Everyone { least: 1 }).sizes(SIZES);
    let entry = if C::FLOW.reduces() {
        entry
            .made_of(reduction::element_bytes, reduction::check_case)
            .with(const { &[ElementType::PARAMETER, ReductionOp::PARAMETER, BufferMemory::PARAMETER] })
    } else if C::FLOW.has_messages() {
        entry.made_of(derived::block_bytes, derived::check).with(&[MESSAGE_TYPE, BufferMemory::PARAMETER])
    } else {
        entry
    };
    let entry = if C::FLOW.is_rooted() { entry.with(&[Root::PARAMETER]) } else { entry };
    if C::FLOW.has_messages() { entry } else { entry.without_sizes() }
}

/// Completes the entry of a kernel that is paced and whose time may be compared with one message.
const fn paced<C: Call>(entry: Benchmark) -> Benchmark {
    let entry = shaped::<C>(entry);
    if is_broadcast::<C>() { entry.above_one_way() } else { entry }
}

const fn is_broadcast<C: Call>() -> bool {
    matches!(C::FLOW.receives.who, Participants::Others)
}

const fn shaped<C: Call>(entry: Benchmark) -> Benchmark {
    let entry = entry.layout(Layout::Everyone { least: 1 }).sizes(SIZES);
    // Keys of rows name the root before the groups, and those before unequal blocks.
    let entry = if C::FLOW.is_rooted() { entry.with(&[Root::PARAMETER]) } else { entry };
    let entry = entry.with(&[Groups::PARAMETER]);
    let entry = if C::FLOW.vector { entry.with(&[Imbalance::PARAMETER]) } else { entry };
    let entry = if C::FLOW.reduces() {
        entry.made_of(reduction::element_bytes, reduction::check_case)
    } else {
        entry.made_of(derived::block_bytes, check_datatype)
    };
    if C::FLOW.has_messages() { entry } else { entry.without_sizes() }
}

/// Adds the parameters of an operation: how it starts, its own, `more`, and those of its buffers.
const fn with_parameters<C: Call>(
    entry: Benchmark,
    more: &[&'static Parameter],
    of_buffers: &[&'static Parameter],
) -> Benchmark {
    let own: &[&'static Parameter] = match (C::FLOW.has_neighbours(), C::FLOW.in_place()) {
        _ if C::FLOW.reduces() => {
            const { &[ElementType::PARAMETER, ReductionOp::PARAMETER, InPlace::PARAMETER] }
        }
        _ if !C::FLOW.has_messages() => &[],
        (true, _) => const { &[Topology::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE] },
        (_, Some(_)) => const { &[InPlace::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE] },
        _ => const { &[Datatype::PARAMETER, MESSAGE_TYPE] },
    };
    let entry = entry.with(&[Pacing::PARAMETER, SyncHosts::PARAMETER]).with(own).with(more);
    if C::FLOW.has_messages() { entry.with(of_buffers) } else { entry }
}

/// Runs the blocking call on the buffers, or with copies of them through memory of the host.
pub(crate) fn run_blocking<C: Call>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, staged| match staged {
        Staged::Off => run_cached::<Collective<C, Blocking>>(session),
        Staged::On => run_paced::<Collective<C, kernel::Staged>, Mesh>(session),
    })
}

/// Runs a kernel with the same buffers in every iteration, or with others.
pub(crate) fn run_cached<K: Movable>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, cache| match cache {
        Cache::Warm => run_paced::<K, Mesh>(session),
        Cache::Cold => run_paced::<Cold<K>, Mesh>(session),
    })
}

/// Runs a kernel and its overlap with computation, or the kernel alone, like [`run_cached`].
fn run_nonblocking<K: Movable + Overlappable>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, computation| match computation {
        Computation::Overlapped => session.split(|session, cache| match cache {
            Cache::Warm => overlap::run::<K, Mesh>(session),
            Cache::Cold => overlap::run::<Cold<K>, Mesh>(session),
        }),
        // Tests are calls between slices of computation.
        Computation::None => session.without(&[TestCalls::PARAMETER, Parts::PARAMETER], run_cached::<K>),
    })
}
