//! How many launches a job has, and when their intervals are narrow enough.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Requested precision, as a fraction of the median, if the user gives none.
pub(crate) const PRECISION: f64 = 0.02;

/// Returns a random number. Each `RandomState` has unpredictable keys: this is the standard library's source of random numbers.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Number of launches of a job, and the seed of their order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launches {
    pub(crate) count: LaunchCount,
    pub(crate) seed: u64,
    pub(crate) goal: Goal,
}

/// Half width at which intervals are narrow enough.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// As a fraction of the median.
    pub(crate) precision: f64,
    /// Whether the user asked for it.
    pub(crate) is_asked: bool,
}

impl Goal {
    pub(crate) const USUAL: Goal = Goal { precision: PRECISION, is_asked: false };
}

/// How many launches a job has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LaunchCount {
    Fixed(u32),
    /// Until half the interval of every row reaches the goal, or `budget` is spent, or `enough` by at least 9. If the launches are
    /// spread over the budget, until it is spent.
    Until {
        budget: Duration,
        enough: Duration,
        is_spread: bool,
    },
}

impl Launches {
    pub(crate) const ONE: Launches = Launches { count: LaunchCount::Fixed(1), seed: 0, goal: Goal::USUAL };

    /// Returns whether the job has a single launch.
    pub(crate) fn is_one(self) -> bool {
        self.count == LaunchCount::Fixed(1)
    }
}
