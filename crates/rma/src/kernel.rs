//! The kernel of every one-sided benchmark: an operation with a synchronisation in one of three modes.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{
        Busy, Case, Compute, Context, Kernel, Method, Metric, Role, Work,
        cold::{Copies, Movable},
        payload::{Check, Fill, Slots},
    },
    error::{Error, Result},
    unit::Rank,
};
use ombx_mpi::{Hints, Window, WindowKind, WindowOptions};

use crate::{
    iteration::Iteration, memory::Memory, mode::Mode, operation::Operation, sync::Synchronization,
    target::Target,
};

/// Time that a computing target computes in each iteration before it calls MPI once.
const COMPUTING: Duration = Duration::from_micros(50);

/// The kernel of operation `O` with synchronisation `S` in mode `M`.
pub struct Access<O, S, M> {
    iteration: Iteration<O>,
    rank: Rank,
    peer: Rank,
    role: Role,
    computing: Option<Compute>,
    types: PhantomData<(S, M)>,
}

impl<O: Operation, S: Synchronization, M: Mode> Access<O, S, M> {
    /// Calls `access` with this rank's memory.
    fn with_memory<R>(&mut self, access: impl FnOnce(&mut Memory<'_>) -> R) -> Result<R> {
        let Access { rank, peer, role, .. } = *self;
        let (slots, width, answers) =
            (self.iteration.window.slots(), self.iteration.window.width(), M::answers::<S>());
        let (is_origin, is_target) = (answers || role == Role::Active, answers || role == Role::Passive);
        self.iteration.window.with_memory(|locals, window| {
            access(&mut Memory { locals, window, slots, width, rank, peer, is_origin, is_target })
        })
    }

    /// Refuses combinations of operation, synchronisation, size and target that MPI or the mode does not allow.
    fn check_case(case: &Case) -> Result<()> {
        let active = S::LEGS == 2;
        let one_element = [1, 2, 4, 8].contains(&case.bytes.0);
        let reasons = [
            (
                O::HAS_REQUESTS && active,
                "operations with requests need passive-target synchronisation, not pscw or fence",
            ),
            (O::ONE_ELEMENT && !one_element, "the operation works on one element of 1, 2, 4 or 8 bytes"),
            (
                active && case.choice::<Target>() == Target::Computing,
                "--target computing needs passive-target synchronisation, not pscw or fence",
            ),
            (!active && M::NEEDS_ACTIVE, "accesses in both directions need pscw or fence"),
        ];
        reasons.iter().find(|(hit, _)| *hit).map_or(Ok(()), |(_, why)| Err(Error::unsupported(*why)))
    }
}

impl<O: Operation, S: Synchronization, M: Mode> Kernel for Access<O, S, M> {
    const METRIC: Metric = M::METRIC;
    const METHOD: Method = M::METHOD;

    fn work(case: &Case) -> Work {
        M::work::<S>(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Self::check_case(case)?;
        if O::ADDS {
            cx.agree(ombx_mpi::check_sums(case.bytes.0))?;
        }
        let kind: WindowKind = case.choice();
        let hints: Hints = case.choice();
        let slots = Slots::new(case.bytes.0, case.depth).copied(cx, 1)?;
        let options = WindowOptions { kind, slots, locals: O::LOCALS, hints };
        Ok(Access {
            iteration: Iteration::new(Window::open(cx, options)?, case.depth),
            rank: cx.rank(),
            peer: cx.peer,
            role: cx.role,
            computing: (case.choice::<Target>() == Target::Computing).then(|| Compute::lasting(COMPUTING)),
            types: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.with_memory(|memory| O::fill(memory, fill))
    }

    fn iterations_per_check(_: &Case) -> u64 {
        O::ITERATIONS_PER_CHECK
    }

    fn begin(&mut self) -> Result<()> {
        S::begin(&self.iteration.window, self.role)
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        M::active::<O, S>(&self.iteration)
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        if let Some(compute) = &self.computing {
            compute.run();
            self.iteration.window.make_progress()?;
        }
        M::passive::<O, S>(&self.iteration)
    }

    fn end(&mut self) -> Result<()> {
        S::end(&self.iteration.window)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.with_memory(|memory| O::check(memory, fill))
    }
}

impl<O: Operation, S: Synchronization, M: Mode> Movable for Access<O, S, M> {
    fn copies(&self) -> Copies {
        self.iteration.window.slots().copies
    }

    #[inline(always)]
    fn move_to(&mut self, offset: usize) {
        self.iteration.window.move_to(offset);
    }
}
