//! `rma.window`: creating and freeing a window.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Method, Metric, Work,
        payload::{Check, Fill, Slots},
    },
    error::Result,
};
use ombx_mpi::{Mesh, WindowLifetime};

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
