//! `rma.put_many_*` and `rma.get_many_*`: ranks that access the memory of several others and complete all accesses by one flush or fence.

use std::{ffi::c_int, marker::PhantomData};

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, ParameterValue, Work, derived,
        memory::BufferMemory,
        payload::{Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::{Error, Result},
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Epoch, Epochs, Hints, Mesh, Window, WindowKind, WindowOptions};

ombx_core::parameter! {
    /// Ranks that access, and ranks whose memory they access
    pub enum Shape: "shape", Always, default OneToAll {
        /// Rank 0 accesses all other ranks
        OneToAll = "one_to_all",
        /// Every rank accesses all others
        AllToAll = "all_to_all",
        /// Every rank accesses both neighbours in a periodic chain
        Neighbours = "neighbours",
        /// Every rank accesses its partner: 0 and 1, 2 and 3, ...
        Pairs = "pairs",
    }
}

/// Accesses of an origin to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Towards {
    target: Rank,
    /// Position of this origin among those of the target.
    position: u32,
}

impl Shape {
    /// Returns the targets of a rank.
    fn targets(self, rank: u32, ranks: u32) -> Vec<Towards> {
        let towards = |target: u32, position| Towards { target: Rank(target % ranks), position };
        match self {
            Shape::OneToAll if rank > 0 => Vec::new(),
            Shape::OneToAll => (1..ranks).map(|target| towards(target, 0)).collect(),
            Shape::AllToAll => (1..ranks).map(|step| towards(rank + step, step - 1)).collect(),
            Shape::Neighbours => vec![towards(rank + 1, 0), towards(rank + ranks - 1, 1)],
            Shape::Pairs => {
                [rank ^ 1].into_iter().filter(|other| *other < ranks).map(|o| towards(o, 0)).collect()
            }
        }
    }

    /// Returns the origins of a rank, in the order of their positions.
    fn origins(self, rank: u32, ranks: u32) -> Vec<Rank> {
        let of = |origin: u32| Rank(origin % ranks);
        match self {
            Shape::OneToAll if rank == 0 => Vec::new(),
            Shape::OneToAll => vec![Rank(0)],
            Shape::AllToAll => (1..ranks).map(|step| of(rank + ranks - step)).collect(),
            Shape::Neighbours => vec![of(rank + ranks - 1), of(rank + 1)],
            Shape::Pairs => [rank ^ 1].into_iter().filter(|other| *other < ranks).map(Rank).collect(),
        }
    }

    /// Returns the number of pairs of an origin and a target.
    fn accesses(self, ranks: u32) -> u64 {
        let (ranks, others) = (u64::from(ranks), u64::from(ranks - 1));
        match self {
            Shape::OneToAll => others,
            Shape::AllToAll => ranks * others,
            Shape::Neighbours => 2 * ranks,
            Shape::Pairs => ranks / 2 * 2,
        }
    }
}

/// An access to a slot of one of several targets.
pub trait Access: 'static {
    /// Whether the data moves to the target.
    const PUTS: bool;
    /// Functions of MPI.
    const CALLS: &'static [&'static str];
    /// Issues the access to the slots at these offsets.
    fn issue(epoch: &Epoch<'_>, target: c_int, local: usize, remote: usize) -> Result<()>;
}

/// `MPI_Put`.
pub enum PutTo {}

impl Access for PutTo {
    const PUTS: bool = true;
    const CALLS: &'static [&'static str] = &["MPI_Put", "MPI_Win_flush_all"];

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, target: c_int, local: usize, remote: usize) -> Result<()> {
        epoch.put_to(target, local, remote)
    }
}

/// `MPI_Get`.
pub enum GetFrom {}

impl Access for GetFrom {
    const PUTS: bool = false;
    const CALLS: &'static [&'static str] = &["MPI_Get", "MPI_Win_flush_all"];

    #[inline(always)]
    fn issue(epoch: &Epoch<'_>, target: c_int, local: usize, remote: usize) -> Result<()> {
        epoch.get_from(target, remote, local)
    }
}

/// Accesses to one target: its rank, and where its block begins in the local buffer and in its memory, in bytes.
struct Block {
    target: c_int,
    local: usize,
    remote: usize,
}

/// Accesses `A` of this rank to its targets, and of its origins to this rank, completed by `F`. `I`: one to each target, or a window.
///
/// The data of a rank are as many messages as it sends to one target, the same for all. They arrive in a block of their own: in the
/// target's window for each origin of puts, in the local buffer for each target of gets.
struct Many<A, F, I> {
    window: Window,
    rank: Rank,
    /// Messages of a block.
    message: Slots,
    blocks: Vec<Block>,
    /// Ranks whose data arrive on this rank, in the order of their blocks.
    senders: Vec<Rank>,
    types: PhantomData<(A, F, I)>,
}

impl<A: Access, F: Completes, I> Many<A, F, I> {
    /// Calls `access` with the data of this rank and the memory into which data arrive.
    fn with_memory<R>(&mut self, access: impl FnOnce(&mut [u8], &mut [u8]) -> R) -> Result<R> {
        self.window.with_memory(|locals, window| {
            let local = locals[0].bytes_mut();
            if A::PUTS { access(local, window) } else { access(window, local) }
        })
    }
}

impl<A: Access, F: Completes, I: Issues> Kernel for Many<A, F, I> {
    const METRIC: Metric = I::METRIC;
    const METHOD: Method = Method {
        timed: "on every rank, one access to each of its targets, or a window of them, and one flush of \
                all or one fence; the slowest rank counts",
        untimed: "creating the window, MPI_Win_lock_all or the first fence, filling and checking memory, \
                  the synchronisation before each iteration",
        like: "One_put_all, All_put_all, Exchange_put and Bidir_put of IMB-RMA; with --completion fence \
               Unidir_Put and Bidir_Put of IMB-EXT; and the same with gets",
    };

    fn work(case: &Case) -> Work {
        let accesses = case.get::<Shape>().accesses(case.ranks);
        let ops = accesses * u64::from(case.depth());
        Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let (shape, rank, ranks): (Shape, _, _) = (case.get(), cx.rank(), cx.team.size());
        let (targets, origins) = (shape.targets(rank.0, ranks), shape.origins(rank.0, ranks));
        let arriving = if A::PUTS { origins.len() } else { targets.len() }.max(1) as u32;
        let arriving = case.depth().checked_mul(arriving).ok_or_else(|| {
            Error::unsupported(format!(
                "{arriving} blocks of {} messages are too many: choose a smaller --window",
                case.depth()
            ))
        });
        let message = derived::typed(Slots::new(case.bytes.0, case.depth()), case)?;
        let arriving = cx.agree(arriving)?;
        let (exposed, local_slots) =
            if A::PUTS { (arriving, case.depth()) } else { (case.depth(), arriving) };
        let slots = Slots { count: exposed, ..message };
        let options = WindowOptions {
            local_slots,
            ..WindowOptions::for_puts_and_gets(WindowKind::usual(cx), slots, Hints::On)
        };
        let block = |(at, towards): (u32, &Towards)| Block {
            target: towards.target.0 as c_int,
            local: if A::PUTS { 0 } else { message.offset(at * case.depth()) },
            remote: if A::PUTS { message.offset(towards.position * case.depth()) } else { 0 },
        };
        let ranks: Vec<Rank> = targets.iter().map(|towards| towards.target).collect();
        Ok(Many {
            window: Window::open_towards(cx, options, &ranks)?,
            rank,
            message,
            blocks: (0..).zip(&targets).map(block).collect(),
            senders: if A::PUTS { origins } else { ranks },
            types: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (rank, slots, senders) = (self.rank, self.message, self.senders.clone());
        self.with_memory(|own, arriving| {
            fill.write(rank, slots, own);
            for (sender, block) in senders.iter().zip(arriving.chunks_exact_mut(slots.total() as usize)) {
                fill.poison(*sender, slots, block);
            }
        })
    }

    fn begin(&mut self) -> Result<()> {
        F::begin(&self.window)
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let (blocks, depth, stride) = (&self.blocks, self.message.count, self.message.stride as usize);
        F::after(&self.window, |epoch| {
            for Block { target, local, remote } in blocks {
                let mut offset = 0;
                for _ in 0..depth {
                    A::issue(epoch, *target, local + offset, remote + offset)?;
                    offset += stride;
                }
            }
            Ok(())
        })
    }

    fn end(&mut self) -> Result<()> {
        F::end(&self.window)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (rank, slots, senders) = (self.rank, self.message, self.senders.clone());
        self.with_memory(|_, arriving| {
            let blocks = arriving.chunks_exact(slots.total() as usize);
            let checks =
                senders.iter().zip(blocks).map(|(sender, block)| fill.check(*sender, slots, block, rank));
            checks.fold(Check::Passed, Check::and)
        })
    }
}

/// Number of operations that an iteration issues to each target.
pub(crate) trait Issues: 'static {
    /// Figure of the benchmark.
    const METRIC: Metric;
}

/// One operation.
pub(crate) enum One {}

impl Issues for One {
    const METRIC: Metric = Metric::Latency;
}

/// A window of operations.
pub(crate) enum Windowed {}

impl Issues for Windowed {
    const METRIC: Metric = Metric::Bandwidth;
}

/// Returns the entry of an access.
#[track_caller]
const fn entry<A: Access, I: Issues>(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
) -> Benchmark {
    fn run<A: Access, I: Issues>(session: &mut Session<'_>) -> Result<()> {
        session.split(|session, completion| match completion {
            Completion::Remote => run_paced::<Many<A, Remote, I>, Mesh>(session),
            Completion::Local => run_paced::<Many<A, Local, I>, Mesh>(session),
            Completion::Fence => run_paced::<Many<A, Fence, I>, Mesh>(session),
        })
    }
    let metric = <Many<A, Remote, I> as Kernel>::METRIC;
    Benchmark::custom(name, about, metric, <Many<A, Remote, I> as Kernel>::METHOD, run::<A, I>)
        .iterates(A::CALLS, formula)
        .layout(Layout::Everyone { least: 2 })
        .made_of(derived::block_bytes, derived::check)
        .with(&[
            Shape::PARAMETER,
            Completion::PARAMETER,
            MESSAGE_TYPE,
            Pacing::PARAMETER,
            SyncHosts::PARAMETER,
            BufferMemory::PARAMETER,
        ])
}

/// Figure of one access to each target.
const TIME: &str = "t of the slowest rank";
/// Figure of windows of accesses; `A` is the number of pairs of an origin and a target.
const RATE: &str = "A W S / t of the slowest rank; A: pairs of an origin and a target";

ombx_core::inventory::submit!(entry::<PutTo, One>(
    "rma.put_many_latency",
    "one put to each of several ranks and one flush",
    TIME
));
ombx_core::inventory::submit!(entry::<GetFrom, One>(
    "rma.get_many_latency",
    "one get from each of several ranks and one flush",
    TIME
));
ombx_core::inventory::submit!(
    entry::<PutTo, Windowed>("rma.put_many_bw", "many puts to each of several ranks and one flush", RATE)
        .streaming()
);
ombx_core::inventory::submit!(
    entry::<GetFrom, Windowed>("rma.get_many_bw", "many gets from each of several ranks and one flush", RATE)
        .streaming()
);

ombx_core::parameter! {
    /// Call that completes accesses to several ranks
    pub enum Completion: "completion", IfChosen, default Remote {
        /// MPI_Win_flush_all: at the targets
        Remote = "remote",
        /// MPI_Win_flush_local_all: at the origin only
        Local = "local",
        /// MPI_Win_fence on all ranks, as in IMB-EXT
        Fence = "fence",
    }
}

/// The synchronisation of an iteration.
pub trait Completes: 'static {
    /// Prepares the window before the iterations. Untimed.
    fn begin(window: &Window) -> Result<()> {
        window.hold_all()
    }
    /// Issues accesses and completes them.
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Ends the epochs after the iterations. Untimed.
    fn end(window: &Window) -> Result<()> {
        window.release()
    }
}

/// `MPI_Win_flush_all`.
pub enum Remote {}

impl Completes for Remote {
    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_flush_all(issue)
    }
}

/// `MPI_Win_flush_local_all`.
pub enum Local {}

impl Completes for Local {
    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_flush_local_all(issue)
    }
}

/// `MPI_Win_fence`, which also opens the epoch of the next iteration (MPI 4.1, 12.5.1).
pub enum Fence {}

impl Completes for Fence {
    fn begin(window: &Window) -> Result<()> {
        window.fence()
    }

    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_fence(issue)
    }

    fn end(window: &Window) -> Result<()> {
        window.last_fence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every origin knows its position among the origins of its targets.
    #[test]
    fn origins_are_the_inverse_of_targets() {
        for (shape, ranks) in Shape::ALL.iter().flat_map(|shape| [2, 3, 7].map(|ranks| (*shape, ranks))) {
            let mut accesses = 0;
            for rank in 0..ranks {
                let mut found: Vec<(u32, Rank)> = (0..ranks)
                    .flat_map(|origin| {
                        let of = shape.targets(origin, ranks).into_iter();
                        of.filter(|towards| towards.target == Rank(rank))
                            .map(move |t| (t.position, Rank(origin)))
                    })
                    .collect();
                found.sort_unstable();
                let known: Vec<(u32, Rank)> = (0..).zip(shape.origins(rank, ranks)).collect();
                assert_eq!(found, known, "{shape:?} of {ranks}, rank {rank}");
                assert!(known.iter().all(|(_, origin)| *origin != Rank(rank)));
                accesses += known.len() as u64;
            }
            assert_eq!(accesses, shape.accesses(ranks), "{shape:?} of {ranks}");
        }
    }
}
