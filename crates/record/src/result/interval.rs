//! Figures of a row that is still measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::result::{ConnectionCounters, Metric};

/// Figure of one interval of a row that is still measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Name of the benchmark.
    pub bench: String,
    /// Message size, if the row has one.
    pub bytes: Option<u64>,
    /// Time of sampling of the row before the interval, and at its end. Time between rounds does not count.
    pub time: [Duration; 2],
    /// What the figure is.
    pub metric: Metric,
    /// Median of the interval: microseconds, or MB/s. `None` if it has no valid one.
    pub median: Option<f64>,
    /// Counters of the connections on which rank 0 sends: retransmits of the interval, and the congestion windows at its end.
    pub connections: Option<ConnectionCounters>,
}
