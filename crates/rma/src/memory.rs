//! A rank's memory while no operation is in progress, for filling and checking.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, ElementType, Kernel, Method, Metric, ReductionOp, Work,
        payload::{Accumulation, Fill, Slots},
    },
    error::Result,
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Buffer, Mesh, WindowLifetime};

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

    /// Checks on a target that the window holds its initial elements combined with the peer's operands once per iteration, and on an
    /// origin that fetches that the result is what the peer's window held before the last iteration.
    pub fn check_accumulated(&mut self, fill: Fill) -> Check {
        let (here, there) =
            (self.accumulation(self.rank, self.peer), self.accumulation(self.peer, self.rank));
        let (slots, rank, mut found) = (self.slots, self.rank, Check::Passed);
        if self.is_target {
            found = here.check(fill, fill.iterations, slots, self.window, rank);
        }
        if self.is_origin
            && let Some(result) = self.locals.get_mut(1)
        {
            let before = fill.iterations.saturating_sub(1);
            found = found.and(there.check(fill, before, slots, result.bytes_mut(), rank));
        }
        found
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
        timed: "on every rank, MPI_Win_create, a fence, a put of at most 8 bytes into the rank's own \
                memory, a fence and MPI_Win_free; the slowest rank counts",
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

ombx_core::inventory::submit!(
    Benchmark::paced::<Lifetime, Mesh>(
        "rma.window",
        "creating a window, one put into the own memory between two fences, freeing the window"
    )
    .iterates(
        &["MPI_Win_create", "MPI_Win_fence", "MPI_Put", "MPI_Win_fence", "MPI_Win_free"],
        "t of the slowest rank; S: bytes of the window",
    )
    .sizes("0,1..4M")
);
