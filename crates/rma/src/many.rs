//! `rma.put_many_*` and `rma.get_many_*`: ranks that access the memory of several others and complete all accesses by one flush.

use std::{ffi::c_int, marker::PhantomData};

use ombx_core::{
    benchmark::{
        AxisValue, Benchmark, Case, Context, Kernel, Layout, Method, Metric, Work,
        payload::{Check, Fill, Slots},
    },
    error::{Error, Result},
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, pace::Pacing, paced_kernel::run_paced},
    unit::Rank,
};
use ombx_mpi::{Epoch, Epochs, Hints, Mesh, Window, WindowKind, WindowOptions};

ombx_core::axis! {
    /// Ranks that access, and ranks whose memory they access
    pub enum Shape: "shape", Always, default OneToAll {
        /// Rank 0 accesses all other ranks
        OneToAll = "one_to_all",
        /// Every rank accesses all others
        AllToAll = "all_to_all",
        /// Every rank accesses both neighbours in a periodic chain
        Neighbours = "neighbours",
    }
}

impl Shape {
    /// Returns the ranks that a rank accesses. Their memory and the local buffer have one block for each, in this order.
    fn targets(self, rank: u32, ranks: u32) -> Vec<Rank> {
        match self {
            Shape::OneToAll if rank > 0 => Vec::new(),
            Shape::OneToAll | Shape::AllToAll => (1..ranks).map(|step| Rank((rank + step) % ranks)).collect(),
            Shape::Neighbours => vec![Rank((rank + 1) % ranks), Rank((rank + ranks - 1) % ranks)],
        }
    }

    /// Returns the blocks of a rank's memory that other ranks access, each with its origin.
    fn origins(self, rank: u32, ranks: u32) -> Vec<(u32, Rank)> {
        match self {
            Shape::OneToAll if rank == 0 => Vec::new(),
            Shape::OneToAll => vec![(rank - 1, Rank(0))],
            Shape::AllToAll => {
                (1..ranks).map(|step| (step - 1, Rank((rank + ranks - step) % ranks))).collect()
            }
            Shape::Neighbours => vec![(0, Rank((rank + ranks - 1) % ranks)), (1, Rank((rank + 1) % ranks))],
        }
    }

    /// Returns the number of blocks of a rank's memory.
    fn blocks(self, ranks: u32) -> u32 {
        if self == Shape::Neighbours { 2 } else { ranks - 1 }
    }

    /// Returns the number of accesses of all ranks to one target each.
    fn accesses(self, ranks: u32) -> u64 {
        let (ranks, others) = (u64::from(ranks), u64::from(ranks - 1));
        match self {
            Shape::OneToAll => others,
            Shape::AllToAll => ranks * others,
            Shape::Neighbours => 2 * ranks,
        }
    }
}

ombx_core::axis! {
    /// Where the flush of accesses to several ranks completes them
    pub enum Completion: "completion", IfChosen, default Remote {
        /// MPI_Win_flush_all: at the targets
        Remote = "remote",
        /// MPI_Win_flush_local_all: at the origin only
        Local = "local",
    }
}

/// The call that completes the accesses of an iteration.
pub trait Flush: 'static {
    /// Issues accesses and completes them.
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()>;
}

/// `MPI_Win_flush_all`.
pub enum Remote {}

impl Flush for Remote {
    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_flush_all(issue)
    }
}

/// `MPI_Win_flush_local_all`.
pub enum Local {}

impl Flush for Local {
    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_flush_local_all(issue)
    }
}

/// An access to a slot of one of several targets.
pub trait Access: 'static {
    /// Whether the data moves to the target.
    const PUTS: bool;
    /// Function of MPI.
    const CALL: &'static str;
    /// Issues the access.
    fn issue(epoch: &Epoch<'_>, target: c_int, slot: u32) -> Result<()>;
}

/// `MPI_Put`.
pub enum PutTo {}

impl Access for PutTo {
    const PUTS: bool = true;
    const CALL: &'static str = "MPI_Put";

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, target: c_int, slot: u32) -> Result<()> {
        epoch.put_to(target, slot)
    }
}

/// `MPI_Get`.
pub enum GetFrom {}

impl Access for GetFrom {
    const PUTS: bool = false;
    const CALL: &'static str = "MPI_Get";

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, target: c_int, slot: u32) -> Result<()> {
        epoch.get_from(target, slot)
    }
}

/// Accesses `A` of this rank to its targets, or of others to its memory, completed by `F`. `STREAM`: windows of accesses to each target.
struct Many<A, F, const STREAM: bool> {
    window: Window,
    rank: Rank,
    /// Slots of a block.
    depth: u32,
    /// Blocks of the local buffer, each with its target.
    targets: Vec<(u32, Rank)>,
    /// Blocks of the window, each with its origin.
    origins: Vec<(u32, Rank)>,
    types: PhantomData<(A, F)>,
}

/// Calls `each` with every message of some blocks: the other rank, the slot and its bytes.
fn messages(
    buffer: &mut [u8],
    slots: Slots,
    depth: u32,
    blocks: &[(u32, Rank)],
    mut each: impl FnMut(Rank, u32, &mut [u8]),
) {
    for (block, other) in blocks {
        for slot in block * depth..(block + 1) * depth {
            let start = slots.offset(slot);
            each(*other, slot, &mut buffer[start..start + slots.bytes as usize]);
        }
    }
}

impl<A: Access, F: Flush, const STREAM: bool> Kernel for Many<A, F, STREAM> {
    const METRIC: Metric = if STREAM { Metric::Bandwidth } else { Metric::Latency };
    const METHOD: Method = Method {
        timed: "on every rank, one access to each of its targets, or a window of them, in its own part of their memory, and one flush \
                of all; the slowest rank counts",
        untimed: "creating the window, MPI_Win_lock_all, filling and checking memory, a barrier before each iteration",
        like: "One_put_all, All_put_all and Exchange_put of IMB-RMA, and the same with gets",
    };

    fn work(case: &Case) -> Work {
        let accesses = case.choice::<Shape>().accesses(case.ranks);
        let ops = accesses * u64::from(case.depth);
        Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let (shape, rank, ranks): (Shape, _, _) = (case.choice(), cx.rank(), cx.team.size());
        let count = case.depth.checked_mul(shape.blocks(ranks)).ok_or_else(|| {
            Error::unsupported(format!(
                "{ranks} windows of {} messages are too many; use --window",
                case.depth
            ))
        });
        let slots = Slots::new(case.bytes.0, cx.agree(count)?);
        let options = WindowOptions { kind: WindowKind::Allocate, slots, locals: 1, hints: Hints::On };
        let targets = shape.targets(rank.0, ranks);
        Ok(Many {
            window: Window::open_towards(cx, options, &targets)?,
            rank,
            depth: case.depth,
            targets: (0..).zip(targets).collect(),
            origins: shape.origins(rank.0, ranks),
            types: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let Many { window, rank, depth, targets, origins, .. } = self;
        let slots = window.slots();
        window.with_memory(|locals, window| {
            let local = locals[0].bytes_mut();
            let (from, sent, into, arriving) = match A::PUTS {
                true => (local, &*targets, window, &*origins),
                false => (window, &*origins, local, &*targets),
            };
            messages(from, slots, *depth, sent, |_, slot, message| {
                fill.words(*rank, slot.into()).write(message);
            });
            messages(into, slots, *depth, arriving, |owner, slot, message| {
                fill.words(owner, slot.into()).flipped(u64::MAX).write(message);
            });
        })
    }

    fn begin(&mut self) -> Result<()> {
        self.window.hold_all()
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let depth = self.depth;
        F::after(&self.window, |epoch| {
            let mut slot = 0;
            for &target in epoch.targets() {
                for _ in 0..depth {
                    A::issue(epoch, target, slot)?;
                    slot += 1;
                }
            }
            Ok(())
        })
    }

    fn end(&mut self) -> Result<()> {
        self.window.release()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let Many { window, rank, depth, targets, origins, .. } = self;
        let slots = window.slots();
        let mut found = Check::Passed;
        window.with_memory(|locals, window| {
            let (into, arriving) =
                if A::PUTS { (window, &*origins) } else { (locals[0].bytes_mut(), &*targets) };
            messages(into, slots, *depth, arriving, |owner, slot, message| {
                let check = fill.words(owner, slot.into()).check(message, (*rank, slot.into()));
                found = std::mem::replace(&mut found, Check::Passed).and(check);
            });
        })?;
        Ok(found)
    }
}

/// Returns the entry of an access.
#[track_caller]
const fn entry<A: Access, const STREAM: bool>(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
) -> Benchmark {
    fn run<A: Access, const STREAM: bool>(session: &mut Session<'_>) -> Result<()> {
        session.split(|session, completion| match completion {
            Completion::Remote => run_paced::<Many<A, Remote, STREAM>, Mesh>(session),
            Completion::Local => run_paced::<Many<A, Local, STREAM>, Mesh>(session),
        })
    }
    let metric = <Many<A, Remote, STREAM> as Kernel>::METRIC;
    Benchmark::custom(name, about, metric, <Many<A, Remote, STREAM> as Kernel>::METHOD, run::<A, STREAM>)
        .iterates(const { &[A::CALL, "MPI_Win_flush_all"] }, formula)
        .layout(Layout::Everyone { least: 2 })
        .axes(&[Shape::AXIS, Completion::AXIS, Pacing::AXIS, SyncHosts::AXIS])
}

/// Figure of one access to each target.
const TIME: &str = "t of the slowest rank";
/// Figure of windows of accesses; `A` is the number of pairs of an origin and a target.
const RATE: &str = "A W S / t of the slowest rank; A: pairs of an origin and a target";

ombx_core::inventory::submit! {
    entry::<PutTo, false>("rma.put_many_latency", "one put to each of several ranks and one flush", TIME)
}
ombx_core::inventory::submit! {
    entry::<GetFrom, false>("rma.get_many_latency", "one get from each of several ranks and one flush", TIME)
}
ombx_core::inventory::submit! {
    entry::<PutTo, true>("rma.put_many_bw", "many puts to each of several ranks and one flush", RATE).streaming()
}
ombx_core::inventory::submit! {
    entry::<GetFrom, true>("rma.get_many_bw", "many gets from each of several ranks and one flush", RATE).streaming()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every target knows the origins of its blocks.
    #[test]
    fn origins_are_the_inverse_of_targets() {
        for (shape, ranks) in Shape::ALL.iter().flat_map(|shape| [2, 3, 7].map(|ranks| (*shape, ranks))) {
            let mut accesses = 0;
            for rank in 0..ranks {
                let mut found: Vec<(u32, Rank)> = (0..ranks)
                    .flat_map(|origin| {
                        let of = (0..).zip(shape.targets(origin, ranks));
                        of.filter(|(_, target)| target.0 == rank).map(move |(block, _)| (block, Rank(origin)))
                    })
                    .collect();
                found.sort_unstable();
                let mut known = shape.origins(rank, ranks);
                known.sort_unstable();
                assert_eq!(found, known, "{shape:?} of {ranks}, rank {rank}");
                assert!(known.iter().all(|(block, origin)| *block < shape.blocks(ranks) && origin.0 != rank));
                accesses += known.len() as u64;
            }
            assert_eq!(accesses, shape.accesses(ranks), "{shape:?} of {ranks}");
        }
    }
}
