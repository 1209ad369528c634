//! Arguments that repeat a job.

use std::time::Duration;

use clap::Args;
use ombx_core::measure::plan::Effort;
use ombx_estimate::launches::USUAL_BUDGET;
use ombx_launch::job::launches::{Goal, LaunchCount, Launches, PRECISION, random_seed};
use ombx_record::unit::{self, Bytes};

use crate::arguments::values;

/// Time after which nine launches are enough, if the user asks for nothing particular: a first answer should not take longer.
const FIRST_ANSWER: Duration = Duration::from_secs(3);

/// How many times the ranks are started.
#[derive(Debug, Args)]
pub(crate) struct LaunchesArgs {
    /// Start the ranks this often [default: 9 or more, until --precision or --budget is reached]
    #[arg(long, value_name = "L", value_parser = values::number::<u32>(1..=10_000), help_heading = "How long")]
    pub(crate) launches: Option<u32>,
    /// Start the ranks once: a first look
    ///
    /// It says nothing about the next launch.
    #[arg(long, conflicts_with_all = ["launches", "budget"], help_heading = "How long")]
    pub(crate) quick: bool,
    /// Time of all launches, such as 10s [default: 3s; 30s for 9 launches, or with --precision]
    ///
    /// Six launches may take longer, up to 3 min. More than 30s without --precision is for 30 launches.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = unit::parse_duration, help_heading = "How long")]
    pub(crate) budget: Option<Duration>,
    /// Seed of the random order of cases in each launch [default: a new one each time]
    #[arg(long, value_name = "SEED", value_parser = values::number::<u64>(0..=u64::MAX), help_heading = "How long")]
    pub(crate) seed: Option<u64>,
}

impl LaunchesArgs {
    /// Returns the launches that the user wants. `precision` is a fraction of the median.
    pub(crate) fn launches(&self, precision: Option<f64>) -> Launches {
        let count = match (self.launches, self.budget) {
            _ if self.quick => LaunchCount::Fixed(1),
            (Some(count), Some(budget)) => LaunchCount::AtMost { count, budget },
            (Some(count), None) => LaunchCount::Fixed(count),
            (None, _) => {
                let budget = self.budget.unwrap_or(USUAL_BUDGET);
                let is_asked = precision.is_some() || self.budget.is_some();
                let enough = if is_asked { budget } else { FIRST_ANSWER };
                let is_spread = budget > USUAL_BUDGET && precision.is_none();
                LaunchCount::Until { budget, enough, is_spread }
            }
        };
        let goal = Goal { precision: precision.unwrap_or(PRECISION), is_asked: precision.is_some() };
        Launches { count, seed: self.seed(), goal }
    }

    /// Returns whether the user asks for several launches.
    pub(crate) fn several(&self) -> bool {
        self.launches.is_some_and(|launches| launches > 1) || self.budget.is_some()
    }

    /// Returns the user's seed, or a random one.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }
}

/// How much is measured for each row.
#[derive(Debug, Clone, Args)]
pub(crate) struct EffortArgs {
    /// Stop when intervals are this narrow [default: 2%]
    ///
    /// The 95 % interval of every row is then within ± this percentage of its median.
    #[arg(long, allow_hyphen_values = true, value_parser = unit::parse_percent, help_heading = "How long")]
    pub(crate) precision: Option<f64>,
    /// Maximum time for measuring one row in a launch
    #[arg(long, value_name = "TIME", default_value = "100ms", allow_hyphen_values = true, value_parser = unit::parse_duration, help_heading = "How long")]
    pub(crate) max_time: Duration,
    /// Fixed number of timed iterations per row and launch, as in the OSU benchmarks, for example: 1000
    #[arg(long, value_name = "I", value_parser = values::number::<u64>(1..=1 << 32), conflicts_with = "max_time", help_heading = "How long")]
    pub(crate) iterations: Option<u64>,
    /// Untimed iterations before the timed ones; needs --iterations [default: a tenth of them]
    #[arg(long, value_name = "X", value_parser = values::number::<u64>(0..=1 << 32), requires = "iterations", help_heading = "How long")]
    pub(crate) warmup: Option<u64>,
    /// Iterations per sample; auto keeps the cost of reading the clock below 1 %
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = batch, help_heading = "How long")]
    pub(crate) batch: Batch,
}

impl EffortArgs {
    /// Returns the effort for each row.
    pub(crate) fn effort(&self) -> Effort {
        match self.iterations {
            Some(iterations) => {
                Effort::Fixed { iterations, warmup: self.warmup.unwrap_or(iterations.div_ceil(10)) }
            }
            None => {
                Effort::Precision { precision: self.precision.unwrap_or(PRECISION), max_time: self.max_time }
            }
        }
    }
}

/// List of message sizes in one option value.
pub(crate) type Sizes = Vec<Bytes>;

/// Iterations per sample; `None` means calibrated.
pub(crate) type Batch = Option<u64>;

fn batch(text: &str) -> Result<Batch, String> {
    match (text, unit::digits::<u64>(text)) {
        ("auto", _) => Ok(None),
        (_, Some(n @ 1..=0x1_0000_0000)) => Ok(Some(n)),
        _ => Err("not auto or a positive number of iterations".into()),
    }
}
