//! Constructors of registry entries: an operation calls them to register its benchmarks.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Layout, Pairing, Pairs, Parameter, ParameterValue, Preset,
        derived::{self, by_datatype},
        memory::{BufferMemory, Cache},
        payload::Datatype,
        reduction::{self, ACCUMULATED_OP, ACCUMULATED_TYPE, Elements, MESSAGE_TYPE},
    },
    error::Result,
    measure::{plan::Plan, session::Session},
};
use ombx_mpi::{WindowKind, WindowOptions};

use crate::{
    kernel::{Access, Bandwidth, BidirectionalBandwidth, Latency, Mode},
    op::Operation,
    passive::Target,
    sync::{SyncKind, by_sync},
};

/// Options of the `osu_passive_*` programs of OMB 3.x, whose windows are on memory of `MPI_Alloc_mem`.
pub const OSU_PASSIVE: Preset = &[("sync", "lock"), ("win", "alloc_mem")];

/// Default options of operations that need a passive target.
pub const FLUSH: Preset = &[("sync", "flush")];

/// Size of the one element of an operation whose type is not chosen.
const ELEMENT: u64 = 8;

/// Returns the parameters of the elements of an operation.
const fn of_elements<O: Operation>() -> &'static [&'static Parameter] {
    match O::ELEMENTS {
        Elements::Bytes => const { &[Datatype::PARAMETER, MESSAGE_TYPE] },
        Elements::Compared => const { &[ACCUMULATED_TYPE] },
        _ if O::ONE_ELEMENT => const { &[ACCUMULATED_TYPE, ACCUMULATED_OP] },
        Elements::Accumulated | Elements::Fetched => {
            const { &[ACCUMULATED_TYPE, ACCUMULATED_OP, Datatype::PARAMETER] }
        }
    }
}

/// Checks the type and the operation of a case.
fn check_elements<O: Operation>(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let (element, op) = reduction::accumulated(case);
    reduction::check_accumulate(O::ELEMENTS, element, op)?;
    if O::ONE_ELEMENT {
        return Ok(());
    }
    match case.get() {
        Datatype::Struct => Err("--datatype struct: MPI allows accumulates of one predefined type only; \
                                 choose --datatype vector or indexed"
            .to_owned()),
        _ => derived::check_blocks(case, plan, element),
    }
}

/// Returns the bytes of an element of a case.
fn element_bytes<O: Operation>(case: &Case, plan: &Plan) -> u64 {
    let (element, _) = reduction::accumulated(case);
    if O::ONE_ELEMENT {
        return element.of_size(ELEMENT).width();
    }
    // Blocks are whole elements.
    element.width().max(derived::block_bytes(case, plan))
}

/// Returns the entry of an operation in a mode.
#[track_caller]
const fn entry<O: Operation, M: Mode>(name: &'static str, about: &'static str) -> Benchmark {
    fn run<O: Operation, M: Mode>(session: &mut Session<'_>) -> Result<()> {
        by_datatype(session, |session| by_sync!(session, Access<O, .., M>))
    }
    let entry = Benchmark::custom(name, about, M::METRIC, M::METHOD, run::<O, M>)
        .iterates(O::CALLS, M::FORMULA)
        .layout(Layout::Pairs(Pairs::One))
        .with(&[SyncKind::PARAMETER, WindowKind::PARAMETER])
        .with(of_elements::<O>())
        .with(&[Target::PARAMETER])
        .with(WindowOptions::PARAMETERS)
        .with(&[Pairing::PARAMETER, Cache::PARAMETER, BufferMemory::PARAMETER]);
    let entry = match O::ELEMENTS {
        Elements::Bytes => entry.made_of(derived::block_bytes, derived::check),
        _ => entry.made_of(element_bytes::<O>, check_elements::<O>),
    };
    if O::ONE_ELEMENT { entry.of_one_element() } else { entry }
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
