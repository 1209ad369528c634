//! Lines about machines and software.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Fact, or the reason why it is unknown.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(in crate::file::lines) enum FactLine {
    Known(String),
    Unknown { unknown: String },
}

/// Facts that some hosts have in common.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(in crate::file::lines) struct HostsLine {
    /// Names of the hosts.
    pub(in crate::file::lines) hosts: Vec<String>,
    /// Facts about each of them, such as `cpu`, `memory` and `kernel`.
    pub(in crate::file::lines) facts: BTreeMap<String, FactLine>,
}
