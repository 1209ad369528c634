//! What one iteration does, and how its time becomes a figure.

use serde::{Deserialize, Serialize};

crate::named! {
    /// Figure of a benchmark that is shown first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Metric {
        /// Time of one leg in microseconds.
        Latency = "latency",
        /// Bytes per time in MB/s (10^6 bytes), and messages per second.
        Bandwidth = "bandwidth",
    }
}

impl Metric {
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

crate::named! {
    /// Rule that combines the times of timed ranks to one time per sample.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Aggregation {
        /// Time of rank 0.
        Origin = "origin",
        /// Time of the slowest pair; of several pairs, of fans, and where one rank other than rank 0 is timed.
        Pairs = "pairs",
        /// Time of the slowest rank.
        Slowest = "slowest",
        /// Time from the first rank's start to the last rank's end, on a global clock.
        Global = "global",
    }
}
