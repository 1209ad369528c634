//! What a chart shows, and its unit.

use ombx_core::{
    benchmark::Metric,
    result::{Headline, MESSAGE_RATE_UNIT, Measurement},
};

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Time of a message or an operation.
    Latency,
    /// Bytes per second.
    Bandwidth,
    /// Messages per second.
    MessageRate,
    /// Bus bandwidth of a collective operation.
    BusBandwidth,
}

impl From<Metric> for Quantity {
    fn from(metric: Metric) -> Quantity {
        match metric {
            Metric::Latency => Quantity::Latency,
            Metric::Bandwidth => Quantity::Bandwidth,
        }
    }
}

impl Quantity {
    /// Returns the figure of a row; `None` if it has none.
    pub fn of(self, row: &Measurement) -> Option<Headline> {
        match self {
            Quantity::Latency | Quantity::Bandwidth => {
                row.headline().filter(|_| self == Quantity::from(row.metric))
            }
            Quantity::MessageRate => row.message_rate(),
            Quantity::BusBandwidth => row.bus_bandwidth(),
        }
    }

    /// Returns the name in titles of charts.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::Latency => Metric::Latency.name(),
            Quantity::Bandwidth => Metric::Bandwidth.name(),
            Quantity::MessageRate => "message rate",
            Quantity::BusBandwidth => "bus bandwidth",
        }
    }

    /// Returns the title of an axis: the quantity and its unit.
    pub const fn axis_title(self) -> &'static str {
        match self {
            Quantity::Latency => "time in µs",
            Quantity::Bandwidth => "bandwidth in MB/s",
            Quantity::MessageRate => "message rate in kmsg/s",
            Quantity::BusBandwidth => "bus bandwidth in MB/s",
        }
    }

    /// Returns the unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Quantity::Latency => "µs",
            Quantity::Bandwidth | Quantity::BusBandwidth => "MB/s",
            Quantity::MessageRate => MESSAGE_RATE_UNIT,
        }
    }
}
