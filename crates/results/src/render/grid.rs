//! Text tables without lines, and common cells.

use std::ops::Range;

use comfy_table::{CellAlignment, Row, Table, presets};
use ombx_core::unit::Bytes;

/// Text of a missing value.
pub(super) const NO_VALUE: &str = "n/a";

/// Returns an empty table with these titles. The columns in `right` are aligned to the right.
pub(super) fn grid(titles: impl Into<Row>, right: Range<usize>) -> Table {
    let mut grid = Table::new();
    grid.load_style(presets::NOTHING).set_header(titles);
    let columns = grid.column_iter_mut().skip(right.start).take(right.len());
    columns.for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    grid
}

/// Formats a message size.
pub(super) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string())
}

/// Formats an interval: `low .. high`.
pub(super) fn interval(bounds: Option<[f64; 2]>, format: impl Fn(f64) -> String) -> String {
    bounds.map_or(NO_VALUE.into(), |[low, high]| format!("{} .. {}", format(low), format(high)))
}
