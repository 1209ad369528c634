//! SVG primitives: coordinates, symbols of series, lines, dots and intervals.

use std::fmt::Write;

/// Maximum number of series in one chart. There is one colour and one symbol for each.
pub(crate) const MAX_SERIES: usize = 8;

/// Formats a coordinate with at most one decimal.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Returns the outline of the symbol of a series, centred at the origin. Shapes differ for readers who do not see colours.
pub(crate) fn symbol(series: usize) -> &'static str {
    [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "M-3.6-3.6h7.2v7.2h-7.2z",
        "M0-4.8L4.6 3.4H-4.6z",
        "M0-5.2L5.2 0L0 5.2L-5.2 0z",
        "M0 4.8L4.6-3.4H-4.6z",
        "M-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
        "M0-5L4.8-1.5L2.9 4.1H-2.9L-4.8-1.5z",
        "M-5-2.6h10v5.2h-10z",
    ][series % MAX_SERIES]
}

/// Returns the path of a line through points.
pub(crate) fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if at == 0 { 'M' } else { 'L' }, n(*x), n(*y));
    }
    path
}

/// Returns the path of a vertical interval with caps.
pub(crate) fn interval(x: f64, low: f64, high: f64) -> String {
    format!("M{0} {2}h6m-3 0V{3}m-3 0h6M{1} {3}", n(x - 3.0), n(x + 3.0), n(low), n(high))
}

/// Returns the path of dots: segments of no length, which round ends of the line make visible.
pub(crate) fn dots(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("M{} {}h0", n(x), n(y))).collect()
}
