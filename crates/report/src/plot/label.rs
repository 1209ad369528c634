//! Text of figures in charts.

use ombx_core::{benchmark::Metric, result::Headline};
use ombx_results::number::figure;

/// Returns the title of an axis: the metric and its unit.
pub(crate) fn axis_title(metric: Metric) -> &'static str {
    match metric {
        Metric::Latency => "time in µs",
        Metric::Bandwidth => "bandwidth in MB/s",
    }
}

/// Returns the unit of a metric.
pub(crate) fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Latency => "µs",
        Metric::Bandwidth => "MB/s",
    }
}

/// Formats a figure with its unit and its interval.
pub(crate) fn describe(headline: &Headline, metric: Metric) -> String {
    let (value, unit) = (figure(headline.value), unit(metric));
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
