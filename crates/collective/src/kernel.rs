//! The kernel of every collective benchmark: an operation in a mode.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{
        BusTraffic, Case, Compute, Context, Groups, Kernel, Method, Metric, Neighbourhood, Root, Work,
        derived,
        memory::{self, Copies, Movable},
        payload::{Blocks, Check, Fill},
        reduction,
    },
    error::Result,
    measure::overlap::Overlappable,
    unit::Rank,
};
use ombx_mpi::{
    Holder,
    collective::{Call, Operation, Options, Requests},
};

use crate::{
    content,
    mode::{Mode, Nonblocking},
};

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
        neighbourhood: Neighbourhood::of(&case.values),
        groups: case.get(),
        element: element.of_size(case.bytes.0),
        op: case.get(),
        requests: Requests::None,
    }
}

impl<C: Call, M: Mode, H: Holder<Operation<C>>> Kernel for Collective<C, M, H> {
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
        let blocks = Blocks::of(&case.values)?;
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

impl<C: Call, M: Mode> Movable for Collective<C, M> {
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
