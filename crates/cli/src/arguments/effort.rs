//! Arguments that choose sizes and the effort for each row.

use std::time::Duration;

use clap::Args;
use ombx_core::{
    error::Result,
    measure::plan::Effort,
    unit::{self, Bytes},
};

use super::{launches::PRECISION, values};

/// How much is measured for each row.
#[derive(Debug, Args)]
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
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = Batch::parse, help_heading = "How long")]
    pub(crate) batch: Batch,
}

impl EffortArgs {
    /// Returns the effort for each row. `row_time` is the time of a row if this is one of several launches.
    pub(crate) fn effort(&self, row_time: Option<Duration>) -> Effort {
        match (self.iterations, row_time) {
            (Some(iterations), _) => {
                Effort::Fixed { iterations, warmup: self.warmup.unwrap_or(iterations.div_ceil(10)) }
            }
            (None, Some(time)) => Effort::Time(time),
            (None, None) => {
                Effort::Precision { precision: self.precision.unwrap_or(PRECISION), max_time: self.max_time }
            }
        }
    }
}

/// List of message sizes in one option value.
#[derive(Debug, Clone)]
pub(crate) struct Sizes(pub(crate) Vec<Bytes>);

impl Sizes {
    pub(crate) fn parse(text: &str) -> Result<Sizes> {
        ombx_core::sizes::parse_sizes(text).map(Sizes)
    }
}

/// Iterations per sample; `None` means calibrated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch(pub(crate) Option<u64>);

impl Batch {
    fn parse(text: &str) -> std::result::Result<Batch, String> {
        match (text, unit::digits::<u64>(text)) {
            ("auto", _) => Ok(Batch(None)),
            (_, Some(n @ 1..=0x1_0000_0000)) => Ok(Batch(Some(n))),
            _ => Err("not auto or a positive number of iterations".into()),
        }
    }
}
