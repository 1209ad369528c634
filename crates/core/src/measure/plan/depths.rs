//! Numbers of operations in flight.

use super::{Plan, parse_numbers};
use crate::error::{Error, Result};

/// Maximum number of operations in flight.
const MOST: u32 = 1 << 20;

impl Plan {
    /// Returns every number of operations in flight that has rows, for benchmarks that stream.
    pub fn depths(&self) -> impl Iterator<Item = u32> {
        [self.depth].into_iter().chain(self.more_depths.iter().copied())
    }
}

/// Reads a list of numbers of operations in flight: `64`, `1,4,16` or `1..64`, which doubles.
///
/// # Errors
/// Usage error for a malformed list, and for a number that is 0 or too large.
pub fn parse_depths(text: &str) -> Result<Vec<u32>> {
    let bad = || {
        let examples = "use a number such as 64, a list such as 1,4,16, or a range such as 1..64";
        Error::usage(format!("{text:?} is no list of 1 to {MOST} operations in flight: {examples}"))
    };
    let numbers = parse_numbers(text, MOST.into()).ok_or_else(bad)?;
    Ok(numbers.into_iter().map(|number| number as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_lists_and_ranges() {
        assert_eq!(parse_depths("64").unwrap(), [64]);
        assert_eq!(parse_depths("1,4,16").unwrap(), [1, 4, 16]);
        assert_eq!(parse_depths("1..64").unwrap(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(parse_depths("1..64:x4,3").unwrap(), [1, 4, 16, 64, 3]);
        let refused = ["", "0", "0..4", "+1", "1K", "4..1", "1048577", "1,", "99999999999999999999"];
        for text in refused {
            assert!(parse_depths(text).unwrap_err().to_string().contains("such as 1,4,16"), "{text}");
        }
    }

    #[test]
    fn a_plan_lists_all_depths() {
        let plan = Plan { depth: 8, more_depths: vec![2, 4], ..Plan::default() };
        assert_eq!(plan.depths().collect::<Vec<_>>(), [8, 2, 4]);
    }
}
