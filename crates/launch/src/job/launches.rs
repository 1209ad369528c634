//! How many launches a job has, and when their intervals are narrow enough.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// Requested precision, as a fraction of the median, if the user gives none.
pub const PRECISION: f64 = 0.02;

/// Returns a random number. Each `RandomState` has unpredictable keys: this is the standard library's source of random numbers.
pub fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Number of launches of a job, and the seed of their order.
#[derive(Debug, Clone, Copy)]
pub struct Launches {
    /// Their number.
    pub count: LaunchCount,
    /// Seed of the order of cases.
    pub seed: u64,
    /// Precision at which they end.
    pub goal: Goal,
}

/// Half width at which intervals are narrow enough.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// As a fraction of the median.
    pub precision: f64,
    /// Whether the user asked for it.
    pub is_asked: bool,
}

impl Goal {
    /// The goal without a wish of the user.
    pub const USUAL: Goal = Goal { precision: PRECISION, is_asked: false };
}

/// How many launches a job has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LaunchCount {
    /// The number that the user chose.
    Fixed(u32),
    /// The number that the user chose, or fewer if another launch would exceed the budget.
    AtMost {
        /// The number.
        count: u32,
        /// Maximum time.
        budget: Duration,
    },
    /// Until half the interval of every row reaches the goal, or `budget` is spent, or `enough` by at least 9. If the launches are
    /// spread over the budget, until it is spent.
    Until {
        /// Maximum time.
        budget: Duration,
        /// Time for a first answer.
        enough: Duration,
        /// Whether launches are spread over the time.
        is_spread: bool,
    },
}

impl Launches {
    /// A single launch.
    pub const ONE: Launches = Launches { count: LaunchCount::Fixed(1), seed: 0, goal: Goal::USUAL };

    /// Returns the number of launches that the user chose; `None` if their number is open.
    pub fn chosen(self) -> Option<u32> {
        match self.count {
            LaunchCount::Fixed(count) | LaunchCount::AtMost { count, .. } => Some(count),
            LaunchCount::Until { .. } => None,
        }
    }

    /// Returns whether the job has a single launch.
    pub fn is_one(self) -> bool {
        self.count == LaunchCount::Fixed(1)
    }
}
