//! Provenance of rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    error::Exit,
    fact::{Facts, HostFacts},
    result::{Check, ClockProperties, Launched, LoadedFiles, Measurement, Outcome, Place},
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
    /// Program and libraries that rank 0 has loaded; `None` if they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<LoadedFiles>,
    /// What is known since all its ranks have ended; a line of its own in a result file.
    #[serde(skip)]
    pub launched: Option<Launched>,
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

impl From<ClockProperties> for ClockFacts {
    fn from(facts: ClockProperties) -> ClockFacts {
        let ClockProperties { source, resolution_ns, overhead_ns } = facts;
        ClockFacts { source: source.into(), resolution_ns, overhead_ns }
    }
}

/// Numbers of rows of a run by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// All rows.
    pub cases: u64,
    /// Skipped rows.
    pub skipped: u64,
    /// Failed rows whose payload was not wrong.
    pub failed: u64,
    /// Rows with a wrong payload.
    #[serde(default)]
    pub corrupt: u64,
}

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &Measurement) {
        self.cases += 1;
        match (&row.outcome, &row.check) {
            (_, Check::Failed(_)) => self.corrupt += 1,
            (Outcome::Skipped(_), _) => self.skipped += 1,
            (Outcome::Failed(_), _) => self.failed += 1,
            (Outcome::Ok, _) => {}
        }
    }

    /// Returns the numbers of the rows of both.
    #[must_use]
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            cases: self.cases + other.cases,
            skipped: self.skipped + other.skipped,
            failed: self.failed + other.failed,
            corrupt: self.corrupt + other.corrupt,
        }
    }

    /// Returns the exit code of a complete run with these rows.
    pub fn exit_code(&self, allow_skips: bool) -> u8 {
        match self {
            Tally { corrupt: 1.., .. } => Exit::WrongData,
            Tally { failed: 1.., .. } => Exit::Incomplete,
            Tally { skipped: 1.., .. } if !allow_skips => Exit::Incomplete,
            _ => Exit::Success,
        }
        .code()
    }
}
