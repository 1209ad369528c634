//! What one iteration does: its bytes and operations, its metric, and the roles of ranks.

use serde::{Deserialize, Serialize};

/// Figure of a benchmark that is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Time of one leg in microseconds.
    Latency,
    /// Bytes per time in MB/s (10^6 bytes), and messages per second.
    Bandwidth,
}

impl Metric {
    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Latency => "latency",
            Metric::Bandwidth => "bandwidth",
        }
    }

    /// Returns the unit of the headline.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Latency => "us",
            Metric::Bandwidth => "MB/s",
        }
    }
}

/// Amount of work of one iteration. The engine derives all figures from it; kernels never divide a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Payload bytes of all operations, in both directions and over all pairs.
    pub bytes: u64,
    /// Operations (messages).
    pub ops: u64,
    /// Equal legs that follow one another: 2 in a ping-pong.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub legs: u64,
}

/// Bytes that define the algorithm and the bus bandwidth of a collective operation, as nccl-tests does (doc/PERFORMANCE.md).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusTraffic {
    /// Bytes of the largest buffer of a rank. Divided by the time, they are the algorithm bandwidth.
    pub bytes: u64,
    /// Part of these bytes that must pass the busiest link of a rank. Multiplied by it, the algorithm bandwidth becomes the bus
    /// bandwidth, which can be compared with the bandwidth of a link whatever the number of ranks.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub factor: f64,
}

/// Role of a rank in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The rank is timed.
    Active,
    /// The rank answers.
    Passive,
}

/// Method of a kernel in three sentences, for the catalogue of benchmarks.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// What happens between two readings of the clock.
    pub timed: &'static str,
    /// What is deliberately not timed.
    pub untimed: &'static str,
    /// Counterpart in OMB, IMB or LinkTest, and the differences.
    pub like: &'static str,
}
