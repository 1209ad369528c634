//! Lines of the launches of a case.

use serde::{Deserialize, Serialize};

/// Launches of a case.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct LaunchesLine {
    /// Median of each launch that measured the row, in nanoseconds per leg, in the order of launches.
    pub(in crate::file::lines) medians_ns: Vec<f64>,
    /// Figure of each state of the machine, the most frequent first. `summary` is that of the first.
    #[serde(default)]
    pub(in crate::file::lines) states: Vec<StateLine>,
    /// Iterations per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(in crate::file::lines) batch: u64,
    /// Mean, minimum and maximum of the ranks' mean times: medians over launches. Absent if not every rank is timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) across_ranks: Option<AcrossRanksLine>,
    /// Time from the start of the first launch to the end of the last one, in seconds. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) elapsed_s: Option<f64>,
    /// What earlier runs say about the next one. Absent if none were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) between_runs: Option<BetweenRunsLine>,
}

/// What earlier runs of the same case, setup and state of the machine say.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct BetweenRunsLine {
    /// Number of these runs.
    pub(in crate::file::lines) runs: usize,
    /// Interval of 95 % for the headline of the next run, low and high. Absent for fewer than 3 runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) next_ns: Option<[f64; 2]>,
    /// Interval of 95 % for the level of the machine around `median_ns`, low and high. Absent for fewer than 3 runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) level_ns: Option<[f64; 2]>,
    /// Runs whose headline lies in the interval that the others give, and runs for which there is one.
    pub(in crate::file::lines) inside: [usize; 2],
}

/// Figure of the launches in one state of the machine.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct StateLine {
    /// Places of its launches in `medians_ns`, from 0.
    pub(in crate::file::lines) launches: Vec<usize>,
    /// Median of their medians, in nanoseconds per leg.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) median_ns: f64,
    /// Interval within the run, low and high. Absent for a single launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) within_run_ns: Option<[f64; 2]>,
    /// Probability that the order statistics behind `within_run_ns` contain the median of independent launches. Below 0.95 with fewer
    /// than 6 launches.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub(in crate::file::lines) coverage: f64,
    /// Time of a cache line between two cores in this state, in nanoseconds. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) core_to_core_ns: Option<f64>,
}

/// Mean times of ranks, in nanoseconds per leg.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct AcrossRanksLine {
    pub(in crate::file::lines) mean_ns: f64,
    pub(in crate::file::lines) min_ns: f64,
    pub(in crate::file::lines) max_ns: f64,
}
