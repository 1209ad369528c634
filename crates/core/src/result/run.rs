//! Provenance of rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    fact::{Facts, HostFacts},
    system::clock,
    team::Place,
};

/// Provenance of rows: where, when and how they were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Unique name of the run.
    #[serde(rename = "run")]
    pub id: String,
    /// Command line.
    pub argv: Vec<String>,
    /// Start in UTC, to the second.
    pub started: String,
    /// Version of ombx.
    pub version: String,
    /// `release` or `debug`.
    pub profile: String,
    /// Transport between the ranks, such as `mpi`.
    pub fabric: String,
    /// Library and version, as the library reports them.
    pub library: String,
    /// Places of the ranks, in rank order.
    #[serde(rename = "ranks")]
    pub places: Vec<Place>,
    /// Clock of rank 0.
    pub clock: ClockFacts,
    /// Resolved plan, by option.
    #[serde(default)]
    pub plan: BTreeMap<String, String>,
    /// Environment variables that influence MPI or the network.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Facts about the software, such as `commit` and `transport`.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub software: Facts,
    /// Facts about the hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostFacts>,
}

/// Properties of a clock, as results keep them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// `tsc` or `monotonic`.
    pub source: String,
    /// Smallest step, in nanoseconds.
    pub resolution_ns: u64,
    /// Cost of a reading, in nanoseconds.
    pub overhead_ns: u64,
}

impl From<clock::Facts> for ClockFacts {
    fn from(facts: clock::Facts) -> ClockFacts {
        let clock::Facts { source, resolution_ns, overhead_ns } = facts;
        ClockFacts { source: source.into(), resolution_ns, overhead_ns }
    }
}
