//! Modes: one access an iteration, a window of them, or a window both ways.

use ombx_core::{
    benchmark::{
        case::Case,
        work::{Method, Metric, Work},
    },
    error::Result,
};

use crate::{access::Access, op::Op, sync::Synchronization};

/// How many operations an iteration has, and who issues them.
pub trait Mode: 'static + Sized {
    /// What the headline is.
    const METRIC: Metric;
    /// What is timed.
    const METHOD: Method;
    /// Whether it makes sense only where both ranks synchronise.
    const NEEDS_ACTIVE: bool = false;

    /// Bytes, operations and legs.
    fn work<S: Synchronization>(case: &Case) -> Work;
    /// Whether the target accesses the origin too.
    fn answers<S: Synchronization>() -> bool {
        S::LEGS == 2
    }
    /// An iteration of the origin.
    fn active<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()>;
    /// The same iteration at the target.
    fn passive<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()>;
}

const UNTIMED: &str =
    "making the window, filling and checking memory, and the lock around flush and flush_local";

/// Latency: one operation and its synchronisation; in active-target synchronisation the target answers in kind.
pub enum One {}

impl Mode for One {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one operation between the calls that open and close its epoch; under fence and pscw the target then does the \
                same towards the origin and the figure is half, under the others the origin's single access is the figure",
        untimed: UNTIMED,
        like: "osu_put_latency and its kin; with --target computing IMB-RMA's truly passive tests",
    };

    fn work<S: Synchronization>(case: &Case) -> Work {
        let ops = S::LEGS * u64::from(case.pairs);
        Work { bytes: case.bytes.0 * ops, ops, legs: S::LEGS }
    }

    #[inline(always)]
    fn active<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()> {
        S::ping(&access.window, Access::<O, S, Self>::issue_one)
    }

    #[inline(always)]
    fn passive<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()> {
        S::pong(&access.window, Access::<O, S, Self>::issue_one)
    }
}

/// Bandwidth: a window of operations at distinct offsets and one synchronisation; one leg.
pub enum Many {}

impl Mode for Many {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of operations on distinct slots between the calls that open and close their epoch, at the origin",
        untimed: UNTIMED,
        like: "osu_put_bw and osu_get_bw",
    };

    fn work<S: Synchronization>(case: &Case) -> Work {
        streamed(case, 1)
    }

    fn answers<S: Synchronization>() -> bool {
        false
    }

    #[inline(always)]
    fn active<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()> {
        S::access(&access.window, |epoch| access.issue(epoch))
    }

    #[inline(always)]
    fn passive<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()> {
        S::expose(&access.window)
    }
}

/// Bandwidth both ways: each rank issues a window of operations to the other, at the same time; one leg.
pub enum BothWays {}

impl Mode for BothWays {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "a window of operations from each rank to the other, between the calls that open and close both ranks' epochs",
        untimed: UNTIMED,
        like: "osu_put_bibw",
    };
    const NEEDS_ACTIVE: bool = true;

    fn work<S: Synchronization>(case: &Case) -> Work {
        streamed(case, 2)
    }

    #[inline(always)]
    fn active<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()> {
        S::both(&access.window, |epoch| access.issue(epoch))
    }

    #[inline(always)]
    fn passive<O: Op, S: Synchronization>(access: &Access<O, S, Self>) -> Result<()> {
        S::both(&access.window, |epoch| access.issue(epoch))
    }
}

fn streamed(case: &Case, directions: u64) -> Work {
    let ops = directions * u64::from(case.depth) * u64::from(case.pairs);
    Work { bytes: case.bytes.0 * ops, ops, legs: 1 }
}
