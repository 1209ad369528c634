//! The kernels of every one-sided benchmark: one access an iteration, or a window of them.

use std::marker::PhantomData;

use ombx_core::{
    case::{Axis, Case},
    engine::Session,
    error::Result,
    kernel::{Cx, Kernel, Method, Metric, Role, Work},
    payload::{Check, Fill, Slots},
    registry::Benchmark,
    unit::Rank,
};
use ombx_mpi::{Make, Window};

use crate::{
    op::Op,
    sync::{SYNC, Side, Sync, by_sync},
};

/// How the window comes by its memory.
pub const WIN: Axis = Axis {
    name: "win",
    about: "how the window is made: MPI_Win_allocate, MPI_Win_create or MPI_Win_create_dynamic",
    values: &["allocate", "create", "dynamic"],
    default: "allocate",
};

/// A rank's two memories while nothing is under way, as an operation fills and checks them.
pub struct Memory<'m> {
    /// The origin's own buffer.
    pub local: &'m mut [u8],
    /// The memory that this rank exposes.
    pub window: &'m mut [u8],
    /// The shape of both.
    pub slots: Slots,
    /// This rank.
    pub rank: Rank,
    /// The rank that it accesses, or that accesses it.
    pub peer: Rank,
    /// Whether this rank issues operations.
    pub is_origin: bool,
    /// Whether operations are issued on its window.
    pub is_target: bool,
}

/// A window opened towards a peer, with who does what.
struct Target {
    window: Window,
    rank: Rank,
    peer: Rank,
    role: Role,
    legs: u64,
}

impl Target {
    fn open(cx: &Cx<'_>, case: &Case, depth: u32, legs: u64) -> Result<Target> {
        let make = match case.axis(&WIN) {
            "create" => Make::Create,
            "dynamic" => Make::Dynamic,
            _ => Make::Allocate,
        };
        let window = Window::open(cx, make, Slots::new(case.bytes.0, depth))?;
        Ok(Target { window, rank: cx.rank(), peer: cx.peer, role: cx.role, legs })
    }

    fn side(&self) -> Side {
        match self.role {
            Role::Active => Side::Origin,
            Role::Passive => Side::Target,
        }
    }

    /// Lets an operation look at both memories.
    fn look<R>(&mut self, look: impl FnOnce(&mut Memory<'_>) -> R) -> Result<R> {
        let Target { rank, peer, legs, .. } = *self;
        let (is_origin, is_target) = (self.side() == Side::Origin || legs == 2, self.side() == Side::Target || legs == 2);
        let slots = self.window.slots();
        self.window.memories(|local, window| look(&mut Memory { local, window, slots, rank, peer, is_origin, is_target }))
    }
}

/// Latency: one operation and its synchronisation; in active-target synchronisation the target answers in kind.
pub struct One<O, S>(Target, PhantomData<fn() -> (O, S)>);

impl<O: Op, S: Sync> Kernel for One<O, S> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one operation between the calls that open and close its epoch; under fence and pscw the target then does the \
                same towards the origin and the figure is half, under the others the origin's single access is the figure",
        untimed: "making the window, filling and checking memory, and the lock around flush and flush_local",
        like: "osu_put_latency and its kin; a passive target waits in a barrier",
    };

    fn work(case: &Case) -> Work {
        let pairs = u64::from(case.pairs);
        Work { bytes: S::LEGS * case.bytes.0 * pairs, ops: S::LEGS * pairs, legs: S::LEGS }
    }

    fn open(cx: &Cx<'_>, case: &Case) -> Result<Self> {
        Ok(One(Target::open(cx, case, 1, S::LEGS)?, PhantomData))
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.look(|memory| O::fill(memory, fill))
    }

    fn begin(&mut self) -> Result<()> {
        S::begin(&self.0.window, self.0.side())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        S::ping(&self.0.window, |epoch| O::issue(epoch, 0))
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        S::pong(&self.0.window, |epoch| O::issue(epoch, 0))
    }

    fn end(&mut self) -> Result<()> {
        S::end(&self.0.window)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.0.look(|memory| O::check(memory, fill))
    }
}

/// Bandwidth: a window of operations at distinct offsets and one synchronisation; one leg.
pub struct Many<O, S> {
    target: Target,
    depth: u32,
    types: PhantomData<fn() -> (O, S)>,
}

impl<O: Op, S: Sync> Kernel for Many<O, S> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of operations on distinct slots between the calls that open and close their epoch, at the origin",
        untimed: "making the window, filling and checking memory, and the lock around flush and flush_local",
        like: "osu_put_bw and osu_get_bw",
    };

    fn work(case: &Case) -> Work {
        let ops = u64::from(case.depth) * u64::from(case.pairs);
        Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
    }

    fn open(cx: &Cx<'_>, case: &Case) -> Result<Self> {
        Ok(Many { target: Target::open(cx, case, case.depth, 1)?, depth: case.depth, types: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.target.look(|memory| O::fill(memory, fill))
    }

    fn begin(&mut self) -> Result<()> {
        S::begin(&self.target.window, self.target.side())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        let depth = self.depth;
        S::access(&self.target.window, |epoch| (0..depth).try_for_each(|slot| O::issue(epoch, slot)))
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        S::expose(&self.target.window)
    }

    fn end(&mut self) -> Result<()> {
        S::end(&self.target.window)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.target.look(|memory| O::check(memory, fill))
    }
}

/// An entry for the latency of an operation.
#[track_caller]
pub const fn latency<O: Op>(name: &'static str, about: &'static str) -> Benchmark {
    fn run<O: Op>(session: &mut Session<'_>) -> Result<()> {
        by_sync!(session, One<O, ..>)
    }
    let method = One::<O, crate::sync::Pscw>::METHOD;
    Benchmark::custom(name, about, Metric::Latency, method, run::<O>).axes(&[&SYNC, &WIN])
}

/// An entry for the bandwidth of an operation.
#[track_caller]
pub const fn bandwidth<O: Op>(name: &'static str, about: &'static str) -> Benchmark {
    fn run<O: Op>(session: &mut Session<'_>) -> Result<()> {
        by_sync!(session, Many<O, ..>)
    }
    let method = Many::<O, crate::sync::Pscw>::METHOD;
    Benchmark::custom(name, about, Metric::Bandwidth, method, run::<O>).streaming().axes(&[&SYNC, &WIN])
}
