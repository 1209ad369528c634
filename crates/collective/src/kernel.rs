//! The kernel of every collective benchmark: an operation in a mode, which is blocking, nonblocking or persistent.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{
        BusTraffic, Case, Compute, Context, Groups, Kernel, Method, Metric, Neighbourhood, Root, Work,
        cold::Movable,
        derived,
        memory::{self, Copies},
        payload::{Blocks, Fill},
        reduction,
    },
    error::Result,
    measure::overlap::{self, Overlappable},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{
    Holder,
    collective::{Call, Operation, Options, Requests},
};

use crate::content;

ombx_core::parameter! {
    /// MPI_IN_PLACE: a rank sends from its receive buffer; with a root, only the root does
    pub enum InPlace: "in-place", IfChosen, default Off {
        /// Separate buffers
        Off = "off",
        /// MPI_IN_PLACE
        On = "on",
    }
}

/// Operation `C` in mode `M`, on one rank. `H` holds the operation.
pub struct Collective<C, M, H = Operation<C>> {
    operation: H,
    /// Number of this rank among all ranks.
    rank: Rank,
    /// Number of this rank's group.
    group: u32,
    mode: PhantomData<fn() -> (C, M)>,
}

/// Returns the options of an operation on contiguous blocks.
fn choices<C: Call>(case: &Case) -> Options {
    let element = if C::FLOW.reduces() { case.get() } else { reduction::message_type(case) };
    Options {
        bytes: case.bytes.0,
        blocks: None,
        imbalance: case.get(),
        root: case.get(),
        in_place: case.get::<InPlace>() == InPlace::On,
        topology: case.get(),
        neighbourhood: Neighbourhood::from_values(&case.values),
        groups: case.get(),
        element: element.of_size(case.bytes.0),
        op: case.get(),
        requests: Requests::None,
    }
}

impl<C: Call, M: CallForm, H: Holder<Operation<C>>> Kernel for Collective<C, M, H> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = M::METHOD;

    fn work(case: &Case) -> Work {
        let (ranks, groups) = (case.ranks_of_group(), u64::from(case.get::<Groups>().count()));
        let arrives = |rank| choices::<C>(case).part::<C>(rank, ranks).arriving_bytes();
        let of_group: u64 = (0..ranks).map(arrives).sum();
        Work { bytes: of_group.saturating_mul(groups), ops: groups, legs: 1 }
    }

    fn bus_traffic(case: &Case) -> Option<BusTraffic> {
        C::FLOW.bus_traffic(case.bytes.0, case.ranks_of_group())
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        if case.get::<Root>() == Root::Rotating {
            memory::only_warm(cx, "roots that rotate: give --root a rank")?;
        }
        let blocks = Blocks::from_values(&case.values)?;
        let options = choices::<C>(case);
        let element = derived::element_in(options.element, case.bytes.0, blocks);
        let options = Options { blocks, element, requests: M::REQUESTS, ..options };
        let mut operation = Operation::open(cx, options)?;
        M::prepare(cx, &mut operation)?;
        let operation = cx.agree(H::hold(operation))?;
        let (rank, group) = (cx.rank(), case.get::<Groups>().group_of(cx.rank(), cx.team.size()));
        Ok(Collective { operation, rank, group, mode: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let operation = self.operation.object();
        let (part, fill) = (operation.part(), fill.of_group(self.group));
        let (outgoing, incoming) = (content::outgoing(part), content::incoming(part, 0).unwrap_or_default());
        content::write(&outgoing, fill, operation.from());
        content::write(&incoming, fill, operation.to());
        operation.rewind();
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        M::run(self.operation.object())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let fill = fill.of_group(self.group);
        let operation = self.operation.object();
        let part = operation.part().clone();
        Ok(content::check(&part, fill, operation.to(), self.rank))
    }
}

impl<C: Call, M: CallForm> Movable for Collective<C, M> {
    fn copies(&self) -> Copies {
        self.operation.copies()
    }

    #[inline(always)]
    fn move_to(&mut self, offset: usize) {
        M::move_to(&mut self.operation, offset);
    }
}

impl<C: Call> Overlappable for Collective<C, Nonblocking> {
    type Computation = Compute;

    fn computation(&self, time: Duration) -> Compute {
        Compute::lasting(time)
    }

    #[inline(always)]
    fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()> {
        self.operation.overlapped(tests, slice)
    }
}

/// Calls of the library in one iteration.
pub trait CallForm: 'static {
    /// Description of what is timed.
    const METHOD: Method;
    /// Requests that the operation needs.
    const REQUESTS: Requests = Requests::None;

    /// Prepares the iterations. Untimed.
    fn prepare<C: Call>(_: &Context<'_>, _: &mut Operation<C>) -> Result<()> {
        Ok(())
    }
    /// Makes the copies of the buffers at an offset those of the next iteration.
    #[inline(always)]
    fn move_to<C: Call>(operation: &mut Operation<C>, offset: usize) {
        operation.move_to(offset);
    }
    /// Runs an iteration.
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()>;
}

const UNTIMED: &str =
    "synchronising the ranks between iterations; buffers, communicators of neighbours, filling and checking";

/// The blocking call.
pub enum Blocking {}

impl CallForm for Blocking {
    const METHOD: Method = Method {
        timed: "one blocking call on every rank; the figure is the time of the slowest rank of each iteration",
        untimed: UNTIMED,
        like: "the OSU program of the same name, which prints the mean of the ranks; IMB-MPI1",
    };

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.call()
    }
}

/// The blocking call on memory of the host, after a copy from a device and before a copy to it.
pub enum Staged {}

impl CallForm for Staged {
    const METHOD: Method = Method {
        timed: "on every rank, a copy of what it sends from the device to the host, one blocking call, and \
                a copy of what it has received to the device; the figure is the time of the slowest rank \
                of each iteration",
        ..Blocking::METHOD
    };

    fn prepare<C: Call>(cx: &Context<'_>, operation: &mut Operation<C>) -> Result<()> {
        operation.stage(cx)
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.staged_call()
    }
}

/// The nonblocking call and waiting for it. This is the operation alone, from which overlap is computed.
pub enum Nonblocking {}

impl CallForm for Nonblocking {
    const METHOD: Method = overlap::METHOD;

    fn prepare<C: Call>(cx: &Context<'_>, _: &mut Operation<C>) -> Result<()> {
        Operation::<C>::may_start(cx)
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.overlapped(0, || ())
    }
}

/// A persistent request, which each iteration starts and waits for.
pub enum Persistent {}

impl CallForm for Persistent {
    const METHOD: Method = Method {
        timed: "starting a persistent request and waiting for it, on every rank; the figure is the time of \
                the slowest rank",
        untimed: "creating the request; synchronising the ranks between iterations; buffers, filling and checking",
        like: "osu_*_persistent, which prints the mean of the ranks",
    };
    const REQUESTS: Requests = Requests::Persistent;

    fn prepare<C: Call>(cx: &Context<'_>, operation: &mut Operation<C>) -> Result<()> {
        operation.make_requests(cx)
    }

    #[inline(always)]
    fn move_to<C: Call>(operation: &mut Operation<C>, offset: usize) {
        operation.move_to(offset);
        operation.move_request(offset);
    }

    #[inline(always)]
    fn run<C: Call>(operation: &mut Operation<C>) -> Result<()> {
        operation.restart()
    }
}
