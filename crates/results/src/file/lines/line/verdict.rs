//! Verdict on a sweep over links.

use serde::{Deserialize, Serialize};

/// What is concluded from all launches of a sweep over links. Readers may compute it again from the rows.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct VerdictLine {
    pub(in crate::file::lines) conclusion: ConclusionLine,
    /// Sentences with their evidence, the most important first.
    pub(in crate::file::lines) sentences: Vec<SentenceLine>,
    /// Slow parts, the slowest first.
    pub(in crate::file::lines) slow: Vec<SlowLine>,
    /// For each message size, the slow link that would have been named.
    #[serde(default)]
    pub(in crate::file::lines) nameable: Vec<NameableLine>,
}

/// `clear`: nothing is slow, or all demands are met. `slow`: something is slow, or a demand is missed. `none`: nothing can be concluded.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(in crate::file::lines) enum ConclusionLine {
    Clear,
    Slow,
    None,
}

/// Sentence of a verdict.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct SentenceLine {
    /// Conclusion that the sentence supports.
    pub(in crate::file::lines) conclusion: ConclusionLine,
    pub(in crate::file::lines) text: String,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::file::lines) evidence: Vec<String>,
}

/// Slow part of a machine.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct SlowLine {
    /// `group`, `group_inside`, `host`, `host_inside`, `rank`, `link` or `direction`.
    pub(in crate::file::lines) part: String,
    /// Noun and name of a group, such as `switch s1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::file::lines) name: Option<String>,
    /// Its hosts; of a link, those of its two ends.
    pub(in crate::file::lines) hosts: Vec<String>,
    /// Its ranks; of a link, its two ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::file::lines) ranks: Vec<u32>,
    /// Its time in multiples of the time of comparable parts.
    pub(in crate::file::lines) factor: f64,
    /// Message size with the largest factor.
    pub(in crate::file::lines) bytes: u64,
}

/// Slow link that would have been named.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct NameableLine {
    pub(in crate::file::lines) bytes: u64,
    pub(in crate::file::lines) factor: f64,
}
