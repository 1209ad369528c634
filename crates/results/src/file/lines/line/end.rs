//! Last line of a run, and the line after a launch.

use serde::{Deserialize, Serialize};

/// How the run ended, and its number of rows.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct EndLine {
    pub(in crate::file::lines) outcome: EndOutcome,
    /// Number of rows.
    pub(in crate::file::lines) cases: u64,
    /// Number of skipped rows.
    pub(in crate::file::lines) skipped: u64,
    /// Number of rows that failed, other than by wrong payload.
    pub(in crate::file::lines) failed: u64,
    /// Number of rows with a wrong payload.
    #[serde(default)]
    pub(in crate::file::lines) corrupt: u64,
}

/// `complete`: all cases ran or were skipped. `interrupted`: ended by a signal. `broken`: a rank, launcher or
/// connection failed.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(in crate::file::lines) enum EndOutcome {
    Complete,
    Interrupted,
    Broken,
}

/// What is known when all ranks of a launch have ended. It follows the last run of the launch.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct LaunchedLine {
    /// Time of a cache line between two cores just after the launch, in nanoseconds. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) core_to_core_ns: Option<f64>,
    /// Time since the first launch of the command began, in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) elapsed_s: f64,
    /// Why no launch follows. Absent if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) ended: Option<EndedLine>,
}

/// Why the launches of a command ended.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct EndedLine {
    pub(in crate::file::lines) why: EndingLine,
    /// Half width of intervals at which the command would end, as a fraction of the median.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(in crate::file::lines) precision: f64,
    /// Whether the user asked for this precision.
    pub(in crate::file::lines) is_asked: bool,
}

/// `precise`: every row reached the precision. `most`: the maximum number of launches. `enough`: the
/// time of a run without --budget and --precision. `budget`: the time of the user. `fixed`: the user chose the number.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(in crate::file::lines) enum EndingLine {
    Precise,
    Most,
    Enough,
    Budget,
    Fixed,
}
