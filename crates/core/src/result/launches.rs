//! What a row over several launches has in addition to the row of one launch.

use serde::{Deserialize, Serialize};

use super::AcrossRanks;

/// What an estimate over several launches adds to a row. The median of its summary is the median of the launches' medians in the most
/// frequent state of the machine; launches of other states are never pooled with them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverLaunches {
    /// Median time of one leg in each launch that measured the row, in nanoseconds, in the order of launches.
    pub medians_ns: Vec<f64>,
    /// Figure of each state of the machine that the launches met, the most frequent first. Empty for a single launch.
    #[serde(default)]
    pub states: Vec<StateFigure>,
    /// Iterations per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub batch: u64,
    /// OMB's mean, minimum and maximum over ranks: medians over launches.
    #[serde(default, rename = "across_ranks", skip_serializing_if = "Option::is_none")]
    pub across: Option<AcrossRanks>,
    /// Time from the start of the first launch to the end of the last one, in seconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub elapsed_s: Option<f64>,
    /// What earlier runs say about the next one; `None` if none were given.
    #[serde(default, rename = "between_runs", skip_serializing_if = "Option::is_none")]
    pub between: Option<BetweenRuns>,
    /// Single iterations of the launch, for percentiles over several launches. Empty for several launches, and not in result files, whose
    /// samples give them.
    #[serde(skip)]
    pub singles: SingleTimes,
}

/// Times of one leg in the single iterations of a launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SingleTimes {
    /// Each distinct time in nanoseconds with its number of iterations, ascending.
    pub counts: Vec<(f32, u32)>,
    /// Least percentile in nanoseconds that readings of the clock do not hide.
    pub least_ns: f64,
    /// Step of the clock per leg, in nanoseconds.
    pub step_ns: f64,
}

impl SingleTimes {
    /// Returns the number of iterations.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

/// What earlier runs of the same case, setup and state of the machine say.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BetweenRuns {
    /// Number of these runs.
    pub runs: usize,
    /// Interval of 95 % for the headline of the next run, in nanoseconds; `None` for fewer than 3 runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ns: Option<[f64; 2]>,
    /// Interval of 95 % for the level of the machine around the headline of this run, in nanoseconds; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_ns: Option<[f64; 2]>,
    /// Runs whose headline lies in the interval that the others give, and runs for which there is one.
    pub inside: [usize; 2],
}

/// Figure of the launches in one state of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateFigure {
    /// Places of its launches in [`OverLaunches::medians_ns`], ascending.
    pub launches: Vec<usize>,
    /// Median of their medians, in nanoseconds per leg.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub median_ns: f64,
    /// Low and high end of the interval within the run, in nanoseconds per leg; `None` for a single launch.
    #[serde(default, rename = "within_run_ns", skip_serializing_if = "Option::is_none")]
    pub ends_ns: Option<[f64; 2]>,
    /// Probability that the order statistics behind the interval contain the median of independent launches.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub coverage: f64,
    /// Time that a cache line takes between two cores in this state, in nanoseconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_to_core_ns: Option<f64>,
}

impl OverLaunches {
    /// Returns the launches of one state, of which the median and its interval are known.
    pub fn of_one_state(
        medians_ns: Vec<f64>,
        median_ns: f64,
        ends_ns: Option<[f64; 2]>,
        coverage: f64,
    ) -> Self {
        let launches = (0..medians_ns.len()).collect();
        let state = StateFigure { launches, median_ns, ends_ns, coverage, core_to_core_ns: None };
        OverLaunches { medians_ns, states: vec![state], batch: 1, ..OverLaunches::default() }
    }

    /// Returns the number of launches behind the headline: those of the most frequent state.
    pub fn in_state(&self) -> usize {
        self.states.first().map_or(self.medians_ns.len(), |state| state.launches.len())
    }

    /// Returns the coverage of the interval of the headline; 0 for a single launch.
    pub fn coverage(&self) -> f64 {
        self.states.first().map_or(0.0, |state| state.coverage)
    }

    /// Returns whether the interval of the headline is the range of its launches, whose number is below 9.
    pub fn is_range(&self) -> bool {
        self.in_state() < 9
    }

    /// Returns the medians of the launches behind the headline, in nanoseconds.
    pub fn medians_in_state(&self) -> Vec<f64> {
        match self.states.first() {
            Some(state) => state.launches.iter().filter_map(|at| self.medians_ns.get(*at).copied()).collect(),
            None => self.medians_ns.clone(),
        }
    }
}
