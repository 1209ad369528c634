//! Last line of a run.

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
