//! Test counts, read from the line with which every Rust test harness ends.

use std::{collections::BTreeSet, fmt, iter::Sum, ops::AddAssign};

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// What a line of output adds: nothing unless it is a `test result:` line.
    pub(crate) fn of_line(line: &str) -> Self {
        let Some(counts) = line.trim_start().strip_prefix("test result:") else { return Self::default() };
        let count = |label: &str| {
            let words: Vec<&str> = counts.split_whitespace().collect();
            words
                .windows(2)
                .find(|pair| pair[1].trim_end_matches([';', ',', '.']) == label)
                .and_then(|pair| pair[0].parse().ok())
                .unwrap_or(0)
        };
        Self { passed: count("passed"), failed: count("failed"), skipped: count("ignored") }
    }
}

/// Tests that said while they ran that they test nothing here: the harness takes them for passed.
#[derive(Debug, Default)]
pub(crate) struct Skipped(BTreeSet<String>);

impl Skipped {
    /// Takes note of a line of standard error: `NAME: skipped: WHY`, behind what the harness may have begun to print.
    pub(crate) fn see(&mut self, line: &str) {
        if let Some((before, _)) = line.split_once(": skipped: ")
            && let Some(name) = before.split_whitespace().next_back()
        {
            self.0.insert(name.to_owned());
        }
    }

    /// The counts, once those tests are taken out of what has passed.
    pub(crate) fn out_of(&self, tally: Tally) -> Tally {
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

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |mut all, tally| {
            all += tally;
            all
        })
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
    fn other_lines_add_nothing() {
        assert_eq!(Tally::of_line("3 passed; 4 failed"), Tally::default());
        assert_eq!(
            Tally::of_line("a test that prints test result: ok. 9 passed; 0 failed"),
            Tally::default()
        );
        assert_eq!(Tally::of_line("test result: unknown"), Tally::default());
    }
}
