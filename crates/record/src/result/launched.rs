//! How a run ended, and what is known when all ranks of its launch have ended.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// All cases ran or were skipped.
    Complete,
    /// A signal ended the run.
    Interrupted,
    /// A rank, a launcher or a connection failed.
    Broken,
}

/// What the launching process knows when all ranks of a launch have ended.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launched {
    /// Time of a cache line between two cores just after the launch, in nanoseconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub core_to_core_ns: Option<f64>,
    /// Time since the first launch of the command began, in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub elapsed_s: f64,
    /// Why no launch follows; `None` if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// Why the launches of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// The reason.
    pub why: Ending,
    /// Half width of intervals at which the command would end, as a fraction of the median.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub precision: f64,
    /// Whether the user asked for this precision.
    pub is_asked: bool,
}

/// Why no more launches are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// The interval of every row had the requested precision at two looks at it in a row.
    Precise,
    /// The maximum number of launches.
    Most,
    /// Another launch would exceed the time that is enough for a first answer.
    Enough,
    /// Another launch would exceed the budget.
    Budget,
    /// The user chose the number of launches.
    Fixed,
}
