//! Numbers as text in tables and charts.

/// Formats a number with four significant digits or more. Values below 1 have four decimals.
pub fn figure(value: f64) -> String {
    let digits = match value.abs() {
        x if x >= 100_000.0 => 0,
        x if x >= 1000.0 => 1,
        x if x >= 100.0 => 2,
        x if x >= 1.0 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// Formats the label of a tick: a [`figure`] without trailing zeros.
pub fn tick_label(value: f64) -> String {
    let text = figure(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
