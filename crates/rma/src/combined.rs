//! `rma.acc_many_*`: every rank accumulates into the memory of rank 0.

use std::{ffi::c_int, marker::PhantomData};

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, ElementType, Kernel, Layout, Method, Metric, ParameterValue, ReductionOp,
        Work,
        memory::BufferMemory,
        payload::{Contributors, Fill, MessageId, Reduction, Slots},
        reduction::{self, ACCUMULATED_TYPE, Elements},
    },
    error::Result,
    measure::{plan::Plan, session::Session},
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Hints, Mesh, Window, WindowKind, WindowOptions, combining_works};

use crate::many::{Completes, Completion, Fence, Issues, Local, One, Remote, Windowed};

/// Rank that holds the memory.
const TARGET: Rank = Rank(0);
/// Contribution of the memory to the result. Those of the ranks follow.
const MEMORY: u32 = 0;

/// Accumulates of all ranks into the memory of rank 0, completed by `F`. `I`: one of each rank, or a window.
///
/// Memory and ranks make the contributions of a reduction, so that a missing, repeated or wrong one is found.
struct Combined<F, I> {
    window: Window,
    slots: Slots,
    rank: Rank,
    reduction: Reduction,
    types: PhantomData<(F, I)>,
}

/// Returns the type of the elements of a case.
fn element(case: &Case) -> ElementType {
    reduction::accumulated(case).0.of_size(case.bytes.0)
}

impl<F: Completes, I: Issues> Kernel for Combined<F, I> {
    const METRIC: Metric = I::METRIC;
    const METHOD: Method = Method {
        timed: "on every rank, one accumulate into the memory of rank 0, or a window of them, and one \
                flush of all or one fence; the slowest rank counts",
        untimed: "creating the window, MPI_Win_lock_all or the first fence, filling and checking memory, \
                  the synchronisation before each iteration",
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
            types: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, reduction, rank) = (self.slots, self.reduction, self.rank);
        let write = |contribution: u32, buffer: &mut [u8]| {
            for (slot, range) in slots.messages(buffer.len()) {
                fill.reduced(reduction, Contributors::one(contribution), slot).write(&mut buffer[range]);
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
            slots.first_failure(window, |slot, message| {
                fill.reduced(reduction, all, slot).check(message, MessageId { rank, slot })
            })
        })
    }
}

/// Returns the entry of accumulates, one or a window of them.
#[track_caller]
const fn entry<I: Issues>(name: &'static str, about: &'static str, formula: &'static str) -> Benchmark {
    fn run<I: Issues>(session: &mut Session<'_>) -> Result<()> {
        session.split(|session, completion| match completion {
            Completion::Remote => run_paced::<Combined<Remote, I>, Mesh>(session),
            Completion::Local => run_paced::<Combined<Local, I>, Mesh>(session),
            Completion::Fence => run_paced::<Combined<Fence, I>, Mesh>(session),
        })
    }
    let (metric, method) = (<Combined<Remote, I>>::METRIC, <Combined<Remote, I>>::METHOD);
    Benchmark::custom(name, about, metric, method, run::<I>)
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

ombx_core::inventory::submit!(entry::<One>(
    "rma.acc_many_latency",
    "one accumulate of every rank into the memory of rank 0 and one flush",
    "t of the slowest rank",
));
ombx_core::inventory::submit!(
    entry::<Windowed>(
        "rma.acc_many_bw",
        "many accumulates of every rank into the memory of rank 0 and one flush",
        "R W S / t of the slowest rank; R: ranks",
    )
    .streaming()
);
