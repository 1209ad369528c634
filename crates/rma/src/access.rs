//! The kernel of every one-sided benchmark: an operation under a synchronisation, in one of three modes.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{
        case::Case,
        compute::{Busy, Compute},
        context::Context,
        kernel::Kernel,
        payload::{Check, Fill, Slots},
        work::{Method, Metric, Role, Work},
    },
    error::{Error, Result},
    unit::Rank,
};
use ombx_mpi::{Epoch, Hints, Shape, Window, WindowKind};

use crate::{entry::Target, memory::Memory, mode::Mode, op::Op, sync::Synchronization};

/// A computing target computes this long, calls MPI once, and goes on, once for each iteration of the origin.
const COMPUTING: Duration = Duration::from_micros(50);

/// A window opened towards a peer, for operation `O` under synchronisation `S` in mode `M`.
pub struct Access<O, S, M> {
    pub(crate) window: Window,
    depth: u32,
    rank: Rank,
    peer: Rank,
    role: Role,
    computing: Option<Compute>,
    types: PhantomData<(O, S, M)>,
}

impl<O: Op, S: Synchronization, M: Mode> Access<O, S, M> {
    /// The only operation of an iteration, without a loop around it.
    #[inline(always)]
    pub(crate) fn issue_one(epoch: &Epoch<'_>) -> Result<()> {
        O::issue(epoch, 0)?;
        O::issued(epoch)
    }

    /// Every operation of an iteration.
    #[inline(always)]
    pub(crate) fn issue(&self, epoch: &Epoch<'_>) -> Result<()> {
        for slot in 0..self.depth {
            O::issue(epoch, slot)?;
        }
        O::issued(epoch)
    }

    /// Lets an operation look at this rank's memories.
    fn look<R>(&mut self, look: impl FnOnce(&mut Memory<'_>) -> R) -> Result<R> {
        let Access { rank, peer, role, .. } = *self;
        let (slots, width, answers) = (self.window.slots(), self.window.width(), M::answers::<S>());
        let (is_origin, is_target) = (answers || role == Role::Active, answers || role == Role::Passive);
        self.window.memories(|locals, window| {
            look(&mut Memory { locals, window, slots, width, rank, peer, is_origin, is_target })
        })
    }

    /// Why an operation does not go with a synchronisation, a size or a target.
    fn fits(case: &Case) -> Result<()> {
        let active = S::LEGS == 2;
        let one_element = [1, 2, 4, 8].contains(&case.bytes.0);
        let reasons = [
            (
                O::HAS_REQUESTS && active,
                "operations with requests are for passive targets, not for pscw and fence",
            ),
            (O::ONE_ELEMENT && !one_element, "works on one element of 1, 2, 4 or 8 bytes"),
            (
                active && case.choice::<Target>() == Target::Computing,
                "a target that computes takes no part in pscw and fence",
            ),
            (!active && M::NEEDS_ACTIVE, "accesses both ways at once need pscw or fence"),
        ];
        reasons.iter().find(|(hit, _)| *hit).map_or(Ok(()), |(_, why)| Err(Error::unsupported(*why)))
    }
}

impl<O: Op, S: Synchronization, M: Mode> Kernel for Access<O, S, M> {
    const METRIC: Metric = M::METRIC;
    const METHOD: Method = M::METHOD;

    fn work(case: &Case) -> Work {
        M::work::<S>(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Self::fits(case)?;
        let kind: WindowKind = case.choice();
        let hints: Hints = case.choice();
        let slots = Slots::new(case.bytes.0, case.depth);
        Ok(Access {
            window: Window::open(cx, Shape { kind, slots, locals: O::LOCALS, hints })?,
            depth: case.depth,
            rank: cx.rank(),
            peer: cx.peer,
            role: cx.role,
            computing: (case.choice::<Target>() == Target::Computing).then(|| Compute::lasting(COMPUTING)),
            types: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.look(|memory| O::fill(memory, fill))
    }

    fn begin(&mut self) -> Result<()> {
        S::begin(&self.window, self.role)
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        M::active(self)
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        if let Some(compute) = &self.computing {
            compute.run();
            self.window.poke()?;
        }
        M::passive(self)
    }

    fn end(&mut self) -> Result<()> {
        S::end(&self.window)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.look(|memory| O::check(memory, fill))
    }
}
