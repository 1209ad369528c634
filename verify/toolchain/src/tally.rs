//! Test counts, read from the last line of a Rust test harness.

use std::{collections::BTreeSet, fmt, ops::AddAssign};

/// Counts of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were ignored or reported that they test nothing here.
    pub skipped: u64,
}

impl Tally {
    /// Returns the counts of a `test result:` line, and zeros for any other line.
    pub fn of_line(line: &str) -> Self {
        let Some(counts) = line.trim_start().strip_prefix("test result:") else { return Self::default() };
        let [passed, failed, skipped] = ["passed", "failed", "ignored"].map(|label| count(counts, label));
        Self { passed, failed, skipped }
    }
}

/// Returns the number before a label; 0 without one.
fn count(counts: &str, label: &str) -> u64 {
    let words: Vec<&str> = counts.split_whitespace().collect();
    words
        .windows(2)
        .find(|pair| pair[1].trim_end_matches([';', ',', '.']) == label)
        .and_then(|pair| pair[0].parse().ok())
        .unwrap_or(0)
}

/// Tests that reported a skip while they ran. The harness counts them as passed.
#[derive(Debug, Default)]
pub(crate) struct Skipped(BTreeSet<String>);

impl Skipped {
    /// Reads a line of standard error: `NAME: skipped: WHY`, after text of the harness.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some((before, _)) = line.split_once(": skipped: ")
            && let Some(name) = before.split_whitespace().next_back()
        {
            self.0.insert(name.to_owned());
        }
    }

    /// Returns the counts with these tests moved from passed to skipped.
    pub(crate) fn moved_in(&self, tally: Tally) -> Tally {
        let many = (self.0.len() as u64).min(tally.passed);
        Tally { passed: tally.passed - many, skipped: tally.skipped + many, ..tally }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_and_coloured_lines_are_read() {
        let plain =
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.52s";
        assert_eq!(Tally::of_line(plain), Tally { passed: 12, failed: 0, skipped: 1 });
        let red = "test result: \u{1b}[31mFAILED\u{1b}[m. 1 passed; 2 failed; 0 ignored; 0 measured";
        assert_eq!(Tally::of_line(red), Tally { passed: 1, failed: 2, skipped: 0 });
    }

    #[test]
    fn other_lines_are_ignored() {
        assert_eq!(Tally::of_line("3 passed; 4 failed"), Tally::default());
        assert_eq!(
            Tally::of_line("a test that prints test result: ok. 9 passed; 0 failed"),
            Tally::default()
        );
        assert_eq!(Tally::of_line("test result: unknown"), Tally::default());
    }
}
