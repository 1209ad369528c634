//! Numbers of rows by outcome.

use serde::{Deserialize, Serialize};

use super::{Measurement, Outcome};
use crate::{benchmark::payload::Check, exit::Exit};

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
