//! `rma.acc_many_*`: every rank accumulates into the memory of rank 0.

use std::{ffi::c_int, marker::PhantomData};

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, ElementType, Kernel, Layout, Method, Metric, ParameterValue, ReductionOp,
        Work,
        memory::BufferMemory,
        payload::{Accumulation, Check, Contributors, Fill, Reduction, Slots},
        reduction::{self, ACCUMULATED_TYPE, Elements},
    },
    error::Result,
    measure::{plan::Plan, session::Session},
    pacing::{
        clock_sync::SyncHosts,
        paced_kernel::{Pacing, run_paced},
    },
    unit::Rank,
};
use ombx_mpi::{Buffer, Hints, Mesh, Window, WindowKind, WindowLifetime, WindowOptions, combining_works};

use crate::completion::{Completes, Completion, Fence, Local, Remote};

/// Rank that holds the memory.
const TARGET: Rank = Rank(0);
/// Contribution of the memory to the result. Those of the ranks follow.
const MEMORY: u32 = 0;

/// Accumulates of all ranks into the memory of rank 0, completed by `F`. `STREAM`: windows of them.
///
/// Memory and ranks make the contributions of a reduction, so that a missing, repeated or wrong one is found.
struct Combined<F, const STREAM: bool> {
    window: Window,
    slots: Slots,
    rank: Rank,
    reduction: Reduction,
    completion: PhantomData<F>,
}

/// Returns the type of the elements of a case.
fn element(case: &Case) -> ElementType {
    reduction::accumulated(case).0.of_size(case.bytes.0)
}

impl<F: Completes, const STREAM: bool> Kernel for Combined<F, STREAM> {
    const METRIC: Metric = if STREAM { Metric::Bandwidth } else { Metric::Latency };
    const METHOD: Method = Method {
        timed: "on every rank, one accumulate into the memory of rank 0, or a window of them, and one flush of all or one fence; \
                the slowest rank counts",
        untimed: "creating the window, MPI_Win_lock_all or the first fence, filling and checking memory, the synchronisation before \
                  each iteration",
        like: "with --completion fence Accumulate of IMB-EXT",
    };

    fn work(case: &Case) -> Work {
        let ops = u64::from(case.ranks) * u64::from(case.depth());
        Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        combining_works(cx, "MPI_Accumulate")?;
        let (element, op) = (element(case), ReductionOp::Sum);
        let slots = Slots { element, ..Slots::new(case.bytes.0, case.depth()) };
        let moving = WindowOptions::for_puts_and_gets(WindowKind::usual(cx), slots, Hints::On);
        let options = WindowOptions { op, ..moving };
        Ok(Combined {
            window: Window::open_towards(cx, options, &[TARGET])?,
            slots,
            rank: cx.rank(),
            reduction: Reduction { element, op, ranks: case.ranks + 1 },
            completion: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, reduction, rank) = (self.slots, self.reduction, self.rank);
        let write = |contribution: u32, buffer: &mut [u8]| {
            for (slot, message) in messages(slots, buffer) {
                fill.reduced(reduction, Contributors::one(contribution), slot).write(message);
            }
        };
        self.window.with_memory(|locals, window| {
            write(MEMORY + 1 + rank.0, locals[0].bytes_mut());
            write(MEMORY, window);
        })
    }

    fn begin(&mut self) -> Result<()> {
        F::begin(&self.window)
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let depth = self.slots.count;
        F::after(&self.window, |epoch| {
            for slot in 0..depth {
                epoch.accumulate_to(TARGET.0 as c_int, slot)?;
            }
            Ok(())
        })
    }

    fn end(&mut self) -> Result<()> {
        F::end(&self.window)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (slots, reduction, rank) = (self.slots, self.reduction, self.rank);
        let all = Contributors::first(reduction.ranks).repeated_but(fill.iterations, MEMORY);
        // Repeated sums of some types may overflow.
        if rank != TARGET || !reduction.is_known(all) {
            return Ok(Check::Passed);
        }
        self.window.with_memory(|_, window| {
            let checks = messages(slots, window)
                .map(|(slot, message)| fill.reduced(reduction, all, slot).check(message, (rank, slot)));
            checks.fold(Check::Passed, Check::and)
        })
    }
}

/// Returns the messages of a buffer, each with its number.
fn messages(slots: Slots, buffer: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    let parts = buffer.chunks_exact_mut(slots.stride as usize).take(slots.count as usize);
    (0..).zip(parts.map(move |part| &mut part[..slots.bytes as usize]))
}

/// Returns the entry of accumulates, one or a window of them.
#[track_caller]
const fn entry<const STREAM: bool>(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
) -> Benchmark {
    fn run<const STREAM: bool>(session: &mut Session<'_>) -> Result<()> {
        session.split(|session, completion| match completion {
            Completion::Remote => run_paced::<Combined<Remote, STREAM>, Mesh>(session),
            Completion::Local => run_paced::<Combined<Local, STREAM>, Mesh>(session),
            Completion::Fence => run_paced::<Combined<Fence, STREAM>, Mesh>(session),
        })
    }
    let (metric, method) = (<Combined<Remote, STREAM>>::METRIC, <Combined<Remote, STREAM>>::METHOD);
    Benchmark::custom(name, about, metric, method, run::<STREAM>)
        .iterates(&["MPI_Accumulate", "MPI_Win_flush_all"], formula)
        .layout(Layout::Everyone { least: 2 })
        .with(&[
            ACCUMULATED_TYPE,
            Completion::PARAMETER,
            Pacing::PARAMETER,
            SyncHosts::PARAMETER,
            BufferMemory::PARAMETER,
        ])
        .made_of(element_bytes, check_elements)
}

/// Returns the bytes of an element of a case.
fn element_bytes(case: &Case, _: &Plan) -> u64 {
    reduction::accumulated(case).0.width()
}

/// Checks the type of a case.
fn check_elements(case: &Case, _: &Plan) -> std::result::Result<(), String> {
    reduction::check_accumulate(Elements::Accumulated, reduction::accumulated(case).0, ReductionOp::Sum)
}

ombx_core::inventory::submit! {
    entry::<false>(
        "rma.acc_many_latency",
        "one accumulate of every rank into the memory of rank 0 and one flush",
        "t of the slowest rank",
    )
}
ombx_core::inventory::submit! {
    entry::<true>(
        "rma.acc_many_bw",
        "many accumulates of every rank into the memory of rank 0 and one flush",
        "R W S / t of the slowest rank; R: ranks",
    )
    .streaming()
}

/// Local buffers and exposed memory of a rank, and the rank's role.
pub struct Memory<'m> {
    /// The local buffers: the origin's data, then fetched results, then values to compare with.
    pub locals: &'m mut [Buffer],
    /// The memory that this rank exposes.
    pub window: &'m mut [u8],
    /// The slots of the exposed memory and of each local buffer.
    pub slots: Slots,
    /// Type of the elements, and the operation that combines them.
    pub elements: (ElementType, ReductionOp),
    /// This rank's number.
    pub rank: Rank,
    /// The rank on the other side of the operations.
    pub peer: Rank,
    /// Whether this rank issues operations.
    pub is_origin: bool,
    /// Whether the peer issues operations on this rank's window.
    pub is_target: bool,
}

impl Memory<'_> {
    /// Fills the local data if this rank is an origin, and its window if it is a target.
    pub fn fill(&mut self, local: impl FnOnce(&mut [u8]), window: impl FnOnce(&mut [u8])) {
        if self.is_origin {
            local(self.locals[0].bytes_mut());
        }
        if self.is_target {
            window(self.window);
        }
    }

    /// Fills the memory for a swap: a pattern in the origin's data, another one in the target's window, and poison in
    /// the origin's result buffer.
    pub fn fill_swapped(&mut self, fill: Fill) {
        let Memory { slots, rank, peer, is_origin, is_target, .. } = *self;
        if is_target {
            fill.beside().write(rank, slots, self.window);
        }
        if is_origin {
            fill.write(rank, slots, self.locals[0].bytes_mut());
            if let Some(result) = self.locals.get_mut(1) {
                fill.beside().poison(peer, slots, result.bytes_mut());
            }
        }
    }

    /// Returns the operation of one rank on the memory of the other.
    fn accumulation(&self, memory: Rank, operand: Rank) -> Accumulation {
        let (element, op) = self.elements;
        Accumulation { element, op, memory, operand }
    }

    /// Fills the memory for an accumulate: operands in the origin's data, the initial elements in the target's window, and poison in
    /// the origin's result buffer.
    pub fn fill_accumulated(&mut self, fill: Fill) {
        let (here, there) =
            (self.accumulation(self.rank, self.peer), self.accumulation(self.peer, self.rank));
        if self.is_target {
            here.write_memory(fill, self.slots, self.window);
        }
        if self.is_origin {
            there.write_operand(fill, self.slots, self.locals[0].bytes_mut());
            if let Some(result) = self.locals.get_mut(1) {
                there.poison(fill, self.slots, result.bytes_mut());
            }
        }
    }

    /// Checks on a target that the window holds its initial elements combined with the peer's operands once per iteration.
    pub fn check_accumulated(&self, fill: Fill) -> Check {
        let here = self.accumulation(self.rank, self.peer);
        match self.is_target {
            true => here.check(fill, fill.iterations, self.slots, self.window, self.rank),
            false => Check::Passed,
        }
    }

    /// Checks on an origin that the result is what the peer's window held before the last iteration.
    pub fn check_fetched(&mut self, fill: Fill) -> Check {
        let there = self.accumulation(self.peer, self.rank);
        let before = fill.iterations.saturating_sub(1);
        match self.is_origin {
            true => there.check(fill, before, self.slots, self.locals[1].bytes_mut(), self.rank),
            false => Check::Passed,
        }
    }
}

/// A window that lives for one iteration.
struct Lifetime {
    window: WindowLifetime,
    /// Message of the put.
    slots: Slots,
}

impl Kernel for Lifetime {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "on every rank, MPI_Win_create, a fence, a put of at most 8 bytes into the rank's own memory, a fence and MPI_Win_free; \
                the slowest rank counts",
        untimed: "allocating, filling and checking memory, the synchronisation before each iteration",
        like: "Window of IMB-EXT, which puts one byte, and nothing into an empty window",
    };

    fn work(case: &Case) -> Work {
        let (ranks, bytes) = (u64::from(case.ranks), WindowLifetime::slots(case.bytes.0).bytes);
        Work { bytes: bytes * ranks, ops: ranks, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let bytes = case.bytes.0;
        Ok(Lifetime { window: WindowLifetime::open(cx, bytes)?, slots: WindowLifetime::slots(bytes) })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (rank, slots) = (self.window.rank(), self.slots);
        fill.write(rank, slots, self.window.data());
        fill.poison(rank, slots, &mut self.window.memory()[..slots.total() as usize]);
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.window.pass()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (rank, slots) = (self.window.rank(), self.slots);
        Ok(fill.check(rank, slots, &self.window.memory()[..slots.total() as usize], rank))
    }
}

ombx_core::inventory::submit! {
    Benchmark::paced::<Lifetime, Mesh>("rma.window", "creating a window, one put into the own memory between two fences, freeing the window")
        .iterates(
            &["MPI_Win_create", "MPI_Win_fence", "MPI_Put", "MPI_Win_fence", "MPI_Win_free"],
            "t of the slowest rank; S: bytes of the window",
        )
        .sizes("0,1..4M")
}
