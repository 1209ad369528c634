//! Markdown tables that are readable as plain text.

/// Returns a table with aligned columns. The head has the names of the columns, separated by ` | `; each line has as many cells.
pub fn table(head: &str, lines: Vec<Vec<String>>) -> String {
    let head: Vec<String> = head.split(" | ").map(str::to_owned).collect();
    let width = |column: usize| {
        let cells = lines.iter().chain([&head]).map(|line| line[column].chars().count());
        cells.max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let show = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    [head.clone(), rule].iter().chain(&lines).map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let lines = vec![vec!["a".to_owned(), "long".to_owned(), String::new()]];
        let expected = "| x   | y    |     |\n| --- | ---- | --- |\n| a   | long |     |\n";
        assert_eq!(table("x | y | ", lines), expected);
    }
}
