//! Lines of the launches of a case.

use serde::{Deserialize, Serialize};

/// Launches of a case.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct LaunchesLine {
    /// Median of each launch that measured the row, in nanoseconds per leg, in the order of launches.
    pub(in crate::file::lines) medians_ns: Vec<f64>,
    /// Probability that the order statistics behind `ci95_ns` contain the median of independent launches. Below 0.95 with fewer than
    /// 6 launches.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub(in crate::file::lines) coverage: f64,
    /// Two groups of launches, the faster first. Absent if there is one group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::file::lines) modes: Vec<ModeLine>,
    /// Iterations per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(in crate::file::lines) batch: u64,
    /// Mean, minimum and maximum of the ranks' mean times: medians over launches. Absent if not every rank is timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) across_ranks: Option<AcrossRanksLine>,
}

/// Group of launches.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct ModeLine {
    /// Median of the group, in nanoseconds per leg.
    pub(in crate::file::lines) median_ns: f64,
    /// Part of the launches, from 0 to 1.
    pub(in crate::file::lines) share: f64,
}

/// Mean times of ranks, in nanoseconds per leg.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct AcrossRanksLine {
    pub(in crate::file::lines) mean_ns: f64,
    pub(in crate::file::lines) min_ns: f64,
    pub(in crate::file::lines) max_ns: f64,
}
