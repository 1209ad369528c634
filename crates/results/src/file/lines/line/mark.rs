//! Marks in lines of rows.

use serde::{Deserialize, Serialize};

/// How much a mark matters.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(in crate::file::lines) enum LevelLine {
    /// A fact that explains a row; its figure holds.
    Note,
    /// The figure may be off by more than its interval says.
    Caution,
    /// No verdict may rest on the figure.
    Invalid,
}

/// Mark of a row.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct MarkLine {
    /// How much it matters.
    pub(in crate::file::lines) level: LevelLine,
    /// Stable code for programs.
    pub(in crate::file::lines) code: String,
    /// Short form for a table.
    pub(in crate::file::lines) short: String,
    /// Meaning, and what to do.
    pub(in crate::file::lines) advice: String,
    /// Largest possible effect on the median, as a fraction of it. Absent if it has no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) effect: Option<f64>,
}
