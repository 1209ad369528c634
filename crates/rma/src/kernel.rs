//! The kernel of all operations, and its modes: an iteration issues one operation, many, or many in both directions.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{
        Busy, Case, Compute, Context, ElementType, Kernel, Method, Metric, ReductionOp, Role, Work,
        cold::Movable,
        memory::Copies,
        payload::{Accumulation, Blocks, Datatype, Fill, Slots},
        reduction::{self, Elements},
    },
    error::{Error, Result},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Hints, Window, WindowKind, WindowOptions, combining_works};

use crate::{
    memory::Memory,
    op::{Iteration, Operation},
    passive::Target,
    sync::Synchronization,
};

/// Time that a computing target computes in each iteration before it calls MPI once.
const COMPUTING: Duration = Duration::from_micros(50);

/// The kernel of operation `O` with synchronisation `S` in mode `M`.
pub struct Access<O, S, M> {
    iteration: Iteration<O>,
    elements: (ElementType, ReductionOp),
    rank: Rank,
    peer: Rank,
    role: Role,
    computing: Option<Compute>,
    types: PhantomData<(S, M)>,
}

impl<O: Operation, S: Synchronization, M: Mode> Access<O, S, M> {
    /// Calls `access` with this rank's memory.
    fn with_memory<R>(&mut self, access: impl FnOnce(&mut Memory<'_>) -> R) -> Result<R> {
        let Access { elements, rank, peer, role, .. } = *self;
        let (slots, answers) = (self.iteration.window.slots(), M::answers::<S>());
        let (is_origin, is_target) = (answers || role == Role::Active, answers || role == Role::Passive);
        self.iteration.window.with_memory(|locals, window| {
            access(&mut Memory { locals, window, slots, elements, rank, peer, is_origin, is_target })
        })
    }

    /// Refuses combinations of operation, synchronisation, size and target that MPI or the mode does not allow.
    fn check_case(case: &Case) -> Result<()> {
        let active = S::LEGS == 2;
        let element = Self::elements(case, case.bytes.0).0;
        let reasons = [
            (
                O::HAS_REQUESTS && active,
                "operations with requests need passive-target synchronisation, not pscw or fence",
            ),
            (
                active && case.get::<Target>() == Target::Computing,
                "--target computing needs passive-target synchronisation, not pscw or fence",
            ),
            (!active && M::NEEDS_ACTIVE, "accesses in both directions need pscw or fence"),
        ];
        if let Some((_, why)) = reasons.iter().find(|(hit, _)| *hit) {
            return Err(Error::unsupported(*why));
        }
        let has_other_size = O::ONE_ELEMENT && case.bytes.0 != element.width();
        if has_other_size && reduction::accumulated(case).0 == ElementType::Widest {
            return Err(Error::unsupported("the operation works on one element of 1, 2, 4 or 8 bytes"));
        }
        if has_other_size {
            return Err(Error::unsupported(format!(
                "the operation works on one element: use --sizes {} with --type {}",
                element.width(),
                element.name()
            )));
        }
        Ok(())
    }

    /// Returns the type of the elements of a case, and the operation that combines them. The widest type divides `bytes`.
    fn elements(case: &Case, bytes: u64) -> (ElementType, ReductionOp) {
        match O::ELEMENTS {
            Elements::Bytes => (reduction::message_type(case).of_size(bytes), ReductionOp::Sum),
            _ => {
                let (element, op) = reduction::accumulated(case);
                (element.of_size(bytes), op)
            }
        }
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
        if O::ELEMENTS != Elements::Bytes {
            combining_works(cx, O::CALLS[0])?;
        }
        let kind: WindowKind = case.get();
        let hints: Hints = case.get();
        let blocks = Blocks::from_values(&case.values)?;
        let divided = blocks.map_or(case.bytes.0, Blocks::divided);
        let (element, op) = Self::elements(case, divided);
        O::refuse_crash(kind, element.width())?;
        let slots =
            Slots { element, ..Slots::new(case.bytes.0, case.depth()) }.of_blocks(blocks).copied(cx, 1)?;
        let (locals, local_slots) = (O::LOCALS, slots.count);
        let options = WindowOptions { kind, slots, local_slots, locals, hints, op };
        Ok(Access {
            elements: (element, op),
            iteration: Iteration::new(Window::open(cx, options)?, case.depth()),
            rank: cx.rank(),
            peer: cx.peer,
            role: cx.role,
            computing: (case.get::<Target>() == Target::Computing).then(|| Compute::lasting(COMPUTING)),
            types: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.with_memory(|memory| O::fill(memory, fill))
    }

    fn iterations_per_check(case: &Case) -> u64 {
        let divided = if case.get::<Datatype>() == Datatype::Contiguous { case.bytes.0 } else { 1 };
        let (element, op) = Self::elements(case, divided);
        match O::ELEMENTS {
            Elements::Accumulated | Elements::Fetched => Accumulation::iterations_per_check(element, op),
            Elements::Bytes | Elements::Compared => O::ITERATIONS_PER_CHECK,
        }
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

/// The number of operations per iteration, and the ranks that issue them.
pub trait Mode: 'static + Sized {
    /// The main figure of a row.
    const METRIC: Metric;
    /// What is timed and what is not, for the documentation.
    const METHOD: Method;
    /// How the main figure follows from the time of an iteration.
    const FORMULA: &'static str;
    /// Whether the mode needs active-target synchronisation.
    const NEEDS_ACTIVE: bool = false;

    /// Returns bytes, operations and legs of an iteration.
    fn work<S: Synchronization>(case: &Case) -> Work;
    /// Returns whether the target issues operations too.
    fn answers<S: Synchronization>() -> bool {
        S::LEGS == 2
    }
    /// Runs an iteration of the origin.
    fn active<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()>;
    /// Runs the target's side of the same iteration.
    fn passive<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()>;
}

const UNTIMED: &str =
    "creating the window, filling and checking memory, and the lock around flush and flush_local";

/// One operation and its synchronisation. With active-target synchronisation the target then does the same.
pub enum Latency {}

impl Mode for Latency {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one operation between the calls that open and close its epoch. With fence and pscw the \
                target then does the same towards the origin, and the figure is half the time. With the \
                others the figure is the time of the origin's access",
        untimed: UNTIMED,
        like: "osu_put_latency and the other latency tests of OMB; with --target computing: the truly \
               passive tests of IMB-RMA",
    };
    const FORMULA: &'static str = "t / 2 with --sync pscw and fence, t with the others";

    fn work<S: Synchronization>(case: &Case) -> Work {
        let ops = S::LEGS * u64::from(case.pairs);
        Work { bytes: case.bytes.0 * ops, ops, legs: S::LEGS }
    }

    #[inline(always)]
    fn active<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()> {
        S::ping(&iteration.window, Iteration::<O>::issue_one)
    }

    #[inline(always)]
    fn passive<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()> {
        S::pong(&iteration.window, Iteration::<O>::issue_one)
    }
}

/// Many operations on distinct slots and one synchronisation.
pub enum Bandwidth {}

impl Mode for Bandwidth {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "many operations on distinct slots between the calls that open and close their epoch, at the origin",
        untimed: UNTIMED,
        like: "osu_put_bw and osu_get_bw",
    };
    const FORMULA: &'static str = "P W S / t";

    fn work<S: Synchronization>(case: &Case) -> Work {
        streamed(case, 1)
    }

    fn answers<S: Synchronization>() -> bool {
        false
    }

    #[inline(always)]
    fn active<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()> {
        S::access(&iteration.window, |epoch| iteration.issue_all(epoch))
    }

    #[inline(always)]
    fn passive<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()> {
        S::expose(&iteration.window)
    }
}

/// Many operations from each rank to the other at the same time.
pub enum BidirectionalBandwidth {}

impl Mode for BidirectionalBandwidth {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "many operations from each rank to the other, between the calls that open and close both ranks' epochs",
        untimed: UNTIMED,
        like: "osu_put_bibw",
    };
    const FORMULA: &'static str = "2 P W S / t";
    const NEEDS_ACTIVE: bool = true;

    fn work<S: Synchronization>(case: &Case) -> Work {
        streamed(case, 2)
    }

    #[inline(always)]
    fn active<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()> {
        S::both(&iteration.window, |epoch| iteration.issue_all(epoch))
    }

    #[inline(always)]
    fn passive<O: Operation, S: Synchronization>(iteration: &Iteration<O>) -> Result<()> {
        S::both(&iteration.window, |epoch| iteration.issue_all(epoch))
    }
}

/// Returns the work of an iteration of `depth` operations per pair and direction, which is one leg.
fn streamed(case: &Case, directions: u64) -> Work {
    let ops = directions * u64::from(case.depth()) * u64::from(case.pairs);
    Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
}
