//! Arguments that repeat a job.

use std::hash::{BuildHasher, Hasher, RandomState};

use clap::Args;
use ombx_core::measure::plan::Launch;

/// How many times the ranks are started.
#[derive(Debug, Args)]
pub(crate) struct LaunchesArgs {
    /// Repeat the whole job this many times, each time in random order; the result file keeps every launch [default: 1]
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "How long")]
    pub(crate) launches: Option<u32>,
    /// Seed of the random order of --launches [default: a new one each time]
    #[arg(long, value_name = "SEED", help_heading = "How long")]
    pub(crate) seed: Option<u64>,
    /// Number and order of this launch among several
    #[arg(long, hide = true)]
    pub(crate) launch: Option<Launch>,
}

impl LaunchesArgs {
    /// Returns the launches that the user wants, or `default` launches.
    pub(crate) fn or(&self, default: u32) -> Launches {
        // Each RandomState has unpredictable keys: this is the standard library's source of random numbers.
        let seed = self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Launches { count: self.launches.unwrap_or(default), seed }
    }
}

/// Number of launches of a job, and the seed of their order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launches {
    pub(crate) count: u32,
    pub(crate) seed: u64,
}

impl Launches {
    pub(crate) const ONE: Launches = Launches { count: 1, seed: 0 };

    pub(crate) fn each(self) -> impl Iterator<Item = Launch> {
        let Launches { count, seed } = self;
        (1..=count).map(move |number| Launch {
            number,
            of: count,
            order: seed.wrapping_add(u64::from(number)),
        })
    }
}
