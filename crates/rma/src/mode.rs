//! Modes: an iteration issues one operation, many, or many in both directions.

use ombx_core::{
    benchmark::{Case, Method, Metric, Work},
    error::Result,
};

use crate::{
    op::{Iteration, Operation},
    sync::Synchronization,
};

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
        timed: "one operation between the calls that open and close its epoch. With fence and pscw the target then does the same \
                towards the origin, and the figure is half the time. With the others the figure is the time of the origin's access",
        untimed: UNTIMED,
        like: "osu_put_latency and the other latency tests of OMB; with --target computing: the truly passive tests of IMB-RMA",
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
