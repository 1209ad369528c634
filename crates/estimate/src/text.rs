//! Text of files that is safe to print, and headings of rows.

use ombx_record::result::Measurement;

/// Replaces control characters, line separators and marks of writing direction by blanks: text of a file must not move the cursor,
/// start a line, or change the order in which a line is read.
pub fn plain(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|c| if hidden(c) { ' ' } else { c }).collect()
}

/// Joins chosen values with their names, such as `sync=fence win=allocate`.
pub fn named_values<'a>(
    values: impl IntoIterator<Item = (&'a String, &'a String)>,
    separator: &str,
) -> String {
    let all = values.into_iter().map(|(name, value)| format!("{name}={value}"));
    all.collect::<Vec<_>>().join(separator)
}

/// Returns benchmark, axes, window and pairs of a row. Rows with the same heading form a series over sizes.
pub fn heading(row: &Measurement) -> String {
    title(&row.bench, &row.axes, row.depth, row.pairs)
}

/// Joins what the rows of one table have in common.
pub fn title<'a>(
    bench: &str,
    axes: impl IntoIterator<Item = (&'a String, &'a String)>,
    depth: Option<u32>,
    pairs: u32,
) -> String {
    let mut parts = vec![bench.to_owned()];
    parts.extend(Some(named_values(axes, " ")).filter(|axes| !axes.is_empty()));
    if let Some(depth) = depth {
        parts.push(format!("window {depth}"));
    }
    if pairs > 1 {
        parts.push(format!("{pairs} pairs"));
    }
    parts.join(" · ")
}
