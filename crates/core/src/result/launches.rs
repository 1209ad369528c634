//! What a row over several launches has in addition to the row of one launch.

use super::AcrossRanks;

/// What an estimate over several launches adds to a row. The median of its summary is the median of the launches' medians.
#[derive(Debug, Clone, PartialEq)]
pub struct OverLaunches {
    /// Median time of one leg in each launch that measured the row, in nanoseconds, in the order of launches.
    pub medians_ns: Vec<f64>,
    /// Probability that the order statistics behind the interval of the summary contain the median of independent launches.
    pub coverage: f64,
    /// Two groups of launches, the faster first; `None` if there is one group or fewer than 9 launches.
    pub modes: Option<[LaunchMode; 2]>,
    /// Iterations per sample.
    pub batch: u64,
    /// OMB's mean, minimum and maximum over ranks: medians over launches.
    pub across: Option<AcrossRanks>,
}

/// A group of launches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaunchMode {
    /// Median of the group, in nanoseconds per leg.
    pub median_ns: f64,
    /// Part of the launches, from 0 to 1.
    pub share: f64,
}
