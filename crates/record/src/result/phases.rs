//! Time of the phases of a row.

use serde::{Deserialize, Serialize};

/// Time of a row on rank 0, in nanoseconds. The phases follow one another without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phases {
    /// Opening the kernel: memory, windows, threads.
    #[serde(rename = "open")]
    pub open_ns: u64,
    /// Filling buffers with the first pattern.
    #[serde(rename = "fill")]
    pub fill_ns: u64,
    /// Warm-up and calibration of the batch.
    #[serde(rename = "warm_up")]
    pub warm_up_ns: u64,
    /// Rounds of samples, each from the barrier before it to the barrier after it.
    #[serde(rename = "sample")]
    pub sample_ns: u64,
    /// Between rounds: gathering samples, summarising them, applying the stop rule.
    #[serde(rename = "decide")]
    pub decide_ns: u64,
    /// Verification, including one iteration with a second pattern.
    #[serde(rename = "verify")]
    pub verify_ns: u64,
    /// Closing the kernel and completing the row.
    #[serde(rename = "close")]
    pub close_ns: u64,
}

impl Phases {
    /// Returns every phase with its name in results, in order of time.
    pub const fn named(&self) -> [(&'static str, u64); 7] {
        [
            ("open", self.open_ns),
            ("fill", self.fill_ns),
            ("warm_up", self.warm_up_ns),
            ("sample", self.sample_ns),
            ("decide", self.decide_ns),
            ("verify", self.verify_ns),
            ("close", self.close_ns),
        ]
    }

    /// Returns the sum of two rows, phase by phase.
    #[must_use]
    pub const fn plus(self, other: Phases) -> Phases {
        Phases {
            open_ns: self.open_ns.saturating_add(other.open_ns),
            fill_ns: self.fill_ns.saturating_add(other.fill_ns),
            warm_up_ns: self.warm_up_ns.saturating_add(other.warm_up_ns),
            sample_ns: self.sample_ns.saturating_add(other.sample_ns),
            decide_ns: self.decide_ns.saturating_add(other.decide_ns),
            verify_ns: self.verify_ns.saturating_add(other.verify_ns),
            close_ns: self.close_ns.saturating_add(other.close_ns),
        }
    }

    /// Returns the time of all phases.
    pub fn total_ns(&self) -> u64 {
        self.named().iter().fold(0, |sum, (_, part)| sum.saturating_add(*part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_phases_are_complete() {
        let phases = Phases {
            open_ns: 1,
            fill_ns: 2,
            warm_up_ns: 4,
            sample_ns: 8,
            decide_ns: 16,
            verify_ns: 32,
            close_ns: 64,
        };
        assert_eq!(phases.total_ns(), 127);
        assert_eq!(phases.plus(phases).named().map(|(_, ns)| ns), phases.named().map(|(_, ns)| 2 * ns));
    }
}
