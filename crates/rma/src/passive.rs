//! `rma.put_passive`: a put into the memory of a rank that computes meanwhile and does not call MPI.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{
        Benchmark, Busy, Case, Compute, Context, Kernel, Layout, Method, Metric, ParameterValue, Role, Work,
        derived, memory::BufferMemory, payload::Fill, reduction::MESSAGE_TYPE,
    },
    error::{Error, Result},
    measure::{
        overlap::{self, Overlappable},
        session::Session,
    },
    pacing::{clock_sync::SyncHosts, start::Pacing},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Mesh, WindowKind};

use crate::{
    kernel::{Access, Latency},
    op::Put,
    sync::Flush,
};

/// What a rank does in an iteration. It is a type, so that the timed loop has no branch.
trait RankTask: 'static {
    const ROLE: Role;
    /// Work of the rank while the put is in flight.
    type Computation: Busy;

    fn computation(time: Duration) -> Self::Computation;
    /// Runs the rank's part of the access.
    fn access(access: &mut Access<Put, Flush, Latency>) -> Result<()>;
}

/// The rank that puts. It does not compute.
enum Origin {}

/// The rank whose memory is written. It computes.
enum OnTarget {}

/// Computation of a rank that does not compute.
struct Nothing;

impl Busy for Nothing {
    #[inline(always)]
    fn run(&self) {}
}

impl RankTask for Origin {
    const ROLE: Role = Role::Active;
    type Computation = Nothing;

    fn computation(_: Duration) -> Nothing {
        Nothing
    }

    #[inline(always)]
    fn access(access: &mut Access<Put, Flush, Latency>) -> Result<()> {
        access.active()
    }
}

impl RankTask for OnTarget {
    const ROLE: Role = Role::Passive;
    type Computation = Compute;

    fn computation(time: Duration) -> Compute {
        Compute::lasting(time)
    }

    #[inline(always)]
    fn access(_: &mut Access<Put, Flush, Latency>) -> Result<()> {
        Ok(())
    }
}

/// A put of each even rank into the memory of the next one, on a rank with part `P`.
struct Passive<P> {
    access: Access<Put, Flush, Latency>,
    part: PhantomData<P>,
}

impl<P: RankTask> Kernel for Passive<P> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "at the origin, a put and MPI_Win_flush; at the target, computation that lasts as long as \
                the put alone, without calls of MPI",
        untimed: "the put alone, while the target waits in a barrier (pure_us), and the computation alone \
                  (compute_us), which alternate with the samples; the window, its lock, filling and \
                  checking memory; the barrier before each iteration",
        like: "Truly_passive_put of IMB-RMA, whose times contain a barrier",
    };

    fn work(case: &Case) -> Work {
        let puts = u64::from(case.ranks / 2);
        Work { bytes: case.bytes.0 * puts, ops: puts, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        if !cx.team.size().is_multiple_of(2) {
            return Err(Error::unsupported("needs an even number of ranks"));
        }
        let pair = Context { role: P::ROLE, peer: Rank(cx.rank().0 ^ 1), ..*cx };
        Ok(Passive { access: Access::open(&pair, case)?, part: PhantomData })
    }

    ombx_core::forwards!(access: begin, end -> Result<()>);
    ombx_core::forwards!(access: fill(fill: Fill) -> Result<()>);
    ombx_core::forwards!(access: check(fill: Fill) -> Result<Check>);

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        P::access(&mut self.access)
    }
}

impl<P: RankTask> Overlappable for Passive<P> {
    type Computation = P::Computation;

    fn computation(&self, time: Duration) -> P::Computation {
        P::computation(time)
    }

    #[inline(always)]
    fn overlapped(&mut self, _: u32, mut slice: impl FnMut()) -> Result<()> {
        P::access(&mut self.access)?;
        slice();
        Ok(())
    }
}

/// Runs the part of this rank.
fn run(session: &mut Session<'_>) -> Result<()> {
    match session.team.rank().0 % 2 {
        0 => overlap::run::<Passive<Origin>, Mesh>(session),
        _ => overlap::run::<Passive<OnTarget>, Mesh>(session),
    }
}

ombx_core::inventory::submit!(
    Benchmark::custom(
        "rma.put_passive",
        "one put and its flush while the target computes, and how much of it needs no call at the target",
        Metric::Latency,
        <Passive<Origin> as Kernel>::METHOD,
        run,
    )
    .iterates(
        &["MPI_Put", "MPI_Win_flush"],
        "t of the slowest rank; overlap_percent = max(0, 100 - 100 (t - compute) / pure)",
    )
    .layout(Layout::Everyone { least: 2 })
    .made_of(derived::block_bytes, derived::check)
    .with(&[
        Pacing::PARAMETER,
        SyncHosts::PARAMETER,
        WindowKind::PARAMETER,
        MESSAGE_TYPE,
        BufferMemory::PARAMETER
    ])
);

ombx_core::parameter! {
    /// Activity of a passive target during accesses
    pub enum Target: "target", IfChosen, default Waiting {
        /// Wait in a barrier
        Waiting = "waiting",
        /// Compute, and call MPI once per 50 us
        Computing = "computing",
    }
}
