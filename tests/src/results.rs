//! Readers of result files and of JSON Lines.

use std::{fs, io::BufReader, path::Path};

use ombx_results::file::{self, RunWithRows};
use serde_json::Value;

/// Parses the lines of a result file or of JSON Lines on standard output.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is no JSON: {e}")))
        .collect()
}

/// Parses the lines of a file.
pub fn lines_of(path: &Path) -> Vec<Value> {
    lines(&fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Returns the lines that are rows.
pub fn rows(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["kind"] == "case").collect()
}

/// Returns the only run of a file, read by the reader of ombx.
pub fn run_of(path: &Path) -> RunWithRows {
    let file = fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut file = file::read(BufReader::new(file)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(!file.cut_off, "{} is cut off", path.display());
    assert_eq!(file.runs.len(), 1, "runs in {}", path.display());
    file.runs.remove(0)
}

/// Returns the number of complete rows in a file that is being written.
pub fn rows_so_far(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.contains("\"kind\":\"case\"") && line.ends_with('\n'))
        .count()
}

/// Returns lines of results without their checksums, so that a test can change them.
pub fn without_checksums(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(",\"checksum\":") {
        Some((content, _)) => format!("{content}}}\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}
