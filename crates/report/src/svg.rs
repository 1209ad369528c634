//! What all drawings have in common: coordinates as text, the marks of series, and labels that end somewhere.

use std::fmt::Write;

/// Series in one chart at the most: as many colours and marks as can be told apart.
pub(crate) const MOST_SERIES: usize = 8;

/// A coordinate, to a tenth.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The outline of the mark of a series, about its middle: no two alike, so that colour is not needed to tell them apart.
pub(crate) fn mark(series: usize) -> &'static str {
    [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "M-3.6-3.6h7.2v7.2h-7.2z",
        "M0-4.8L4.6 3.4H-4.6z",
        "M0-5.2L5.2 0L0 5.2L-5.2 0z",
        "M0 4.8L4.6-3.4H-4.6z",
        "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
        "M0-5L4.8-1.5L2.9 4.1H-2.9L-4.8-1.5z",
        "M-5-2.6h10v5.2h-10z",
    ][series % MOST_SERIES]
}

/// A line through points.
pub(crate) fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if at == 0 { 'M' } else { 'L' }, n(*x), n(*y));
    }
    path
}

/// An upright interval with its caps.
pub(crate) fn interval(x: f64, low: f64, high: f64) -> String {
    format!("M{0} {2}h6m-3 0V{3}m-3 0h6M{1} {3}", n(x - 3.0), n(x + 3.0), n(low), n(high))
}

/// A label of at most this many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
