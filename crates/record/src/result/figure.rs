//! Figures of a row in addition to its times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A figure of a row in addition to its times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Figure {
    /// Finite value, in the unit with which the figure's name ends.
    Value(f64),
    /// Reason why no value was resolved.
    Unresolved(String),
}

impl Figure {
    /// Returns the value; `None` if it was not resolved.
    pub fn value(&self) -> Option<f64> {
        if let Figure::Value(value) = self { Some(*value) } else { None }
    }
}

/// Figures by name. A name ends with its unit: `overlap_percent`, `round_trip_us`.
pub type Figures = BTreeMap<String, Figure>;

/// Counters of the kernel for the connections from a rank, since they were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionCounters {
    /// Segments that were sent again.
    pub retransmits: u64,
    /// Congestion windows now: how many bytes may be in flight.
    pub cwnd_bytes: u64,
    /// Smoothed round trip now, the longest of all connections. It contains the time in queues that the traffic fills.
    pub rtt_us: u64,
    /// Shortest round trip of a connection in the last minutes (`net.ipv4.tcp_min_rtt_wlen`), without queues; 0 before Linux 4.6.
    pub least_rtt_us: u64,
}

impl ConnectionCounters {
    /// Returns the numbers under their names.
    #[must_use]
    pub fn named(self) -> [(&'static str, u64); 4] {
        [
            ("retransmits", self.retransmits),
            ("cwnd_bytes", self.cwnd_bytes),
            ("rtt_us", self.rtt_us),
            ("least_rtt_us", self.least_rtt_us),
        ]
    }

    /// Returns the numbers as figures of a row.
    #[must_use]
    pub fn figures(self) -> Figures {
        let figure = |(name, value): (&str, u64)| (name.to_owned(), Figure::Value(value as f64));
        self.named().map(figure).into()
    }
}

/// Adds the counters of all connections of a rank; of round trips, the largest and the least.
impl std::iter::Sum for ConnectionCounters {
    fn sum<I: Iterator<Item = ConnectionCounters>>(all: I) -> ConnectionCounters {
        let sum = all.reduce(|sum, one| ConnectionCounters {
            retransmits: sum.retransmits + one.retransmits,
            cwnd_bytes: sum.cwnd_bytes + one.cwnd_bytes,
            rtt_us: sum.rtt_us.max(one.rtt_us),
            least_rtt_us: sum.least_rtt_us.min(one.least_rtt_us),
        });
        sum.unwrap_or_default()
    }
}

/// Figure of a row whose operation was overlapped with computation: time of one leg of the operation alone, in microseconds.
pub const ALONE: &str = "pure_us";

/// Figure of the same row: time of the computation alone, in microseconds.
pub const OVERLAPPING: &str = "compute_us";

/// Returns the names of the figures with the ends of a figure's 95 % interval: `overlap_low_percent` and `overlap_high_percent`
/// for `overlap_percent`. `None` for a name without unit.
pub fn interval_names(name: &str) -> Option<[String; 2]> {
    let (stem, unit) = name.rsplit_once('_')?;
    Some(["low", "high"].map(|end| format!("{stem}_{end}_{unit}")))
}
