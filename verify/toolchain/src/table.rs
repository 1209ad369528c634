//! Markdown tables that are readable as plain text.

/// Returns a table with aligned columns. The cells of the head and of each line, as many as the head has, are separated by ` | `.
pub fn table(head: &str, lines: impl IntoIterator<Item = String>) -> String {
    let columns = head.split(" | ").count();
    let mut rows: Vec<Vec<String>> = [head.to_owned()]
        .into_iter()
        .chain(lines)
        .map(|line| line.splitn(columns, " | ").map(str::to_owned).collect())
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    rows.insert(1, widths.iter().map(|width| "-".repeat(*width)).collect());
    let show = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    rows.iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = ["a | long | ".to_owned()];
        let expected = "| x   | y    |     |\n| --- | ---- | --- |\n| a   | long |     |\n";
        assert_eq!(table("x | y | ", lines), expected);
    }
}
