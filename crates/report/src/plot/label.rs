//! Text of figures in charts.

use ombx_core::{
    benchmark::Metric,
    result::{Headline, MESSAGE_RATE_UNIT},
};
use ombx_results::number::figure;

/// What a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Latency,
    Bandwidth,
    MessageRate,
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
    /// Returns the name in titles of charts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Quantity::Latency => Metric::Latency.name(),
            Quantity::Bandwidth => Metric::Bandwidth.name(),
            Quantity::MessageRate => "message rate",
        }
    }

    /// Returns the title of an axis: the quantity and its unit.
    pub(crate) const fn axis_title(self) -> &'static str {
        match self {
            Quantity::Latency => "time in µs",
            Quantity::Bandwidth => "bandwidth in MB/s",
            Quantity::MessageRate => "message rate in kmsg/s",
        }
    }

    /// Returns the unit.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Quantity::Latency => "µs",
            Quantity::Bandwidth => "MB/s",
            Quantity::MessageRate => MESSAGE_RATE_UNIT,
        }
    }
}

/// Formats a figure with its unit and its interval.
pub(crate) fn describe(headline: &Headline, quantity: Quantity) -> String {
    let (value, unit) = (figure(headline.value), quantity.unit());
    match headline.ci95 {
        Some([low, high]) => format!("{value} {unit}, 95 % interval {} to {}", figure(low), figure(high)),
        None => format!("{value} {unit}, no interval"),
    }
}

/// Shortens a label to this many characters.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
