//! Result of the verification of a payload.

use serde::{Deserialize, Serialize};

use crate::unit::Rank;

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "check", content = "mismatch", rename_all = "lowercase")]
pub enum Check {
    /// Every byte is right.
    Passed,
    /// A byte is wrong.
    Failed(Mismatch),
    /// The kernel has no payload that can be checked.
    Unsupported,
    /// The user disabled verification.
    Off,
}

impl Check {
    /// Returns the name in results.
    pub const fn name(&self) -> &'static str {
        match self {
            Check::Passed => "passed",
            Check::Failed(_) => "failed",
            Check::Unsupported => "unsupported",
            Check::Off => "off",
        }
    }

    /// Returns the first failure of two checks.
    #[must_use]
    pub fn and(self, other: Check) -> Check {
        if self == Check::Passed { other } else { self }
    }
}

/// First wrong byte of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mismatch {
    /// Rank on which the data arrived.
    pub rank: Rank,
    /// Number of the message in the buffer, from 0.
    pub slot: u64,
    /// Position in the message, from 0.
    pub byte: u64,
    /// Value of the byte that was expected.
    pub expected: u8,
    /// Value of the byte that arrived.
    pub actual: u8,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Mismatch { rank, slot, byte, expected, actual } = self;
        write!(f, "rank {rank}, message {slot}, byte {byte}: expected {expected:#04x}, found {actual:#04x}")
    }
}
