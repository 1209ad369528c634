//! Text of figures in charts.

pub(crate) use ombx_plot::Quantity;
use ombx_results::number::Decimals;

use crate::plot::line_chart::Point;

/// Formats a figure with its unit, its interval, and the number of launches.
pub(crate) fn describe(point: &Point, quantity: Quantity) -> String {
    let ci95 = point.figure.ci95;
    let decimals = Decimals::of(point.figure.value, ci95);
    let mut text = format!("{} {}", decimals.format(point.figure.value), quantity.unit());
    // Fewer than 6 launches have no interval of 95 %.
    let percent = point.coverage.map_or(95.0, |coverage| (coverage * 100.0).min(95.0));
    text += &match ci95 {
        Some([low, high]) => {
            let within = if point.coverage.is_some() { "run" } else { "launch" };
            format!(
                ", {percent:.0} % interval within this {within} {} to {}",
                decimals.format(low),
                decimals.format(high)
            )
        }
        None => ", no interval".into(),
    };
    if !point.launches.is_empty() {
        text += &format!(", {} launches", point.launches.len());
    }
    text
}

/// Shortens a label to this many characters.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
