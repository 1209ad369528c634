//! Fits a table to the width of a terminal: leaves out columns that readers can spare, and breaks the last column into lines.

use std::ops::Range;

use comfy_table::{CellAlignment, Row, Table, presets};
use ombx_core::{result::MESSAGE_RATE_UNIT, unit::Bytes};

use super::cells::{ALGORITHM, BUS};

/// Titles of columns that are left out before all others.
const FIRST: [&str; 4] = ["cwnd bytes", "sent per s", "duplicate percent", "reordered percent"];
/// Titles of columns that are left out next. The algorithm bandwidth, percentiles and the bus bandwidth follow them.
const SPARE: [&str; 5] = ["min launch", "max launch", "min", "max", "range"];
/// Titles of columns that are left out last.
const COUNTS: [&str; 9] = [
    "retransmits",
    MESSAGE_RATE_UNIT,
    "launches",
    "samples",
    "finds",
    "mean",
    "90% interval",
    "first",
    "last",
];
/// Width of the last column below which other columns are left out, if its text is wider.
const NARROWEST: usize = 16;
/// Blanks around the text of a column.
const PADDING: usize = 2;

/// A table that fits.
pub(in crate::render) struct Fitted {
    pub(in crate::render) titles: Vec<String>,
    /// Cells of each row. The lines of the last cell are separated by line feeds.
    pub(in crate::render) rows: Vec<Vec<String>>,
    /// Titles of the columns that did not fit.
    pub(in crate::render) left_out: Vec<String>,
}

/// Fits a table to this many columns of a terminal; `None` means that there is no limit.
pub(in crate::render) fn fitted(
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    columns: Option<usize>,
) -> Fitted {
    let mut table = Fitted { titles, rows, left_out: Vec::new() };
    let Some(columns) = columns else { return table };
    while table.least_width() > columns
        && let Some(spare) = table.spare()
    {
        let title = table.leave_out(spare);
        // The smallest value says little without the largest.
        if SPARE.contains(&title.as_str())
            && let Some(largest) = table.spare()
        {
            let _ = table.leave_out(largest);
        }
    }
    let last = table.titles.len() - 1;
    let left = columns.saturating_sub(table.before_last()).max(table.longest_word());
    table.rows.iter_mut().for_each(|row| row[last] = wrapped(&row[last], left).join("\n"));
    table
}

impl Fitted {
    /// Returns the position of the next column to leave out.
    fn spare(&self) -> Option<usize> {
        let is_none = |column: &usize| {
            !self.rows.is_empty()
                && self.rows.iter().all(|row| ["", NO_VALUE].contains(&row[*column].as_str()))
        };
        if let Some(empty) = (1..self.titles.len() - 1).rev().find(is_none) {
            return Some(empty);
        }
        let titled = |name: &str| self.titles.iter().position(|title| title == name);
        let percentile = |title: &String| {
            title.strip_prefix('p').is_some_and(|p| p.starts_with(|c: char| c.is_ascii_digit()))
        };
        let of = |names: &[&str]| names.iter().find_map(|name| titled(name));
        let begins = |word: &str| self.titles.iter().position(|title| title.starts_with(word));
        of(&FIRST)
            .or_else(|| of(&SPARE))
            .or_else(|| begins(ALGORITHM))
            .or_else(|| self.titles.iter().rposition(percentile))
            .or_else(|| begins(BUS))
            .or_else(|| of(&COUNTS))
    }

    fn leave_out(&mut self, column: usize) -> String {
        let has_value = |row: &Vec<String>| !["", NO_VALUE].contains(&row[column].as_str());
        let is_missed = self.rows.iter().any(has_value);
        self.rows.iter_mut().for_each(|row| _ = row.remove(column));
        let title = self.titles.remove(column);
        // Nobody misses a column without a value.
        self.left_out.extend(is_missed.then(|| title.clone()));
        title
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| &row[column]);
        cells.chain([&self.titles[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Returns the width of a line before the text of its last column.
    fn before_last(&self) -> usize {
        (0..self.titles.len() - 1).map(|column| self.width(column) + PADDING).sum::<usize>() + 1
    }

    fn longest_word(&self) -> usize {
        let last = self.titles.len() - 1;
        let words = self.rows.iter().flat_map(|row| row[last].split(' '));
        words.map(|word| word.chars().count()).max().unwrap_or(0)
    }

    fn least_width(&self) -> usize {
        let last = self.titles.len() - 1;
        let has_text = self.rows.iter().any(|row| !row[last].is_empty());
        let text = if has_text { self.width(last).min(NARROWEST.max(self.longest_word())) } else { 0 };
        self.before_last() + text.max(self.titles[last].chars().count())
    }
}

/// Text of a missing value.
pub(crate) const NO_VALUE: &str = "n/a";

/// Returns an empty table with these titles. The columns in `right` are aligned to the right.
pub(crate) fn grid(titles: impl Into<Row>, right: Range<usize>) -> Table {
    let mut grid = Table::new();
    grid.load_style(presets::NOTHING).set_header(titles);
    let columns = grid.column_iter_mut().skip(right.start).take(right.len());
    columns.for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    grid
}

/// Formats a message size.
pub(crate) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes).to_string())
}

/// Formats an interval: `low .. high`.
pub(crate) fn interval(bounds: Option<[f64; 2]>, format: impl Fn(f64) -> String) -> String {
    bounds.map_or(NO_VALUE.into(), |[low, high]| format!("{} .. {}", format(low), format(high)))
}

/// Breaks a text between words into lines of at most this many characters. A longer word has a line of its own.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> (Vec<String>, Vec<Vec<String>>) {
        let of = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>();
        let titles =
            of(&["bytes", "us", "95% interval", "p99", "min launch", "max launch", "launches", "trust"]);
        let rows = vec![
            of(&["8", "0.141", "0.119 .. 0.154", "0.190", "0.098", "0.173", "9", ""]),
            of(&["64K", "7.0", "5.9 .. 8.4", "38.7", "6.1", "8.4", "9", "waited 5% (up to 8%), bimodal"]),
        ];
        (titles, rows)
    }

    #[test]
    fn columns_are_left_out_in_their_order_until_the_table_fits() {
        let left_out = |columns| {
            let (titles, rows) = table();
            fitted(titles, rows, columns).left_out
        };
        assert!(left_out(None).is_empty() && left_out(Some(120)).is_empty());
        assert_eq!(left_out(Some(80)), ["min launch", "max launch"]);
        assert_eq!(left_out(Some(60)), ["min launch", "max launch", "p99"]);
    }

    #[test]
    fn columns_without_a_value_go_first_and_without_a_word() {
        let (titles, mut rows) = table();
        rows.iter_mut().for_each(|row| row[3] = NO_VALUE.into());
        let fitted = fitted(titles, rows, Some(60));
        assert_eq!(fitted.left_out, ["min launch", "max launch"]);
    }

    #[test]
    fn marks_are_broken_between_words() {
        let (titles, rows) = table();
        let fitted = fitted(titles, rows, Some(60));
        let marks = fitted.rows[1].last().unwrap();
        assert_eq!(marks, "waited 5% (up to\n8%), bimodal");
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrapped("overlong a", 4), ["overlong", "a"]);
        assert!(wrapped("", 4).is_empty());
    }
}
