//! Unequal blocks of collective operations with counts and displacements.

use std::{fmt, ops::Range, str::FromStr};

use super::{Named, Parameter, ParameterValue, if_chosen};
use crate::{
    error::{Error, Result},
    unit::digits,
};

/// Largest percentage: the smallest block is empty.
const MOST: u32 = 100;

/// How unequal the blocks of ranks are, in percent of the message size.
///
/// The lengths of `n` blocks grow in equal steps from `1 - p` to `1 + p` times the message size. Together they have `n` times the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imbalance(u32);

impl Imbalance {
    /// Equal blocks.
    pub const NONE: Imbalance = Imbalance(0);

    /// Returns whether all blocks are equal.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the range of block `block` of `blocks` that lie one after the other and together have `total` units.
    ///
    /// Equal blocks differ by one unit at most, and the first ones are longer.
    pub fn range(self, total: u64, block: u32, blocks: u32) -> Range<u64> {
        let start = |block: u32| -> u64 {
            let [total, at, of, percent] =
                [total, block.into(), blocks.into(), self.0.into()].map(u128::from);
            let start = match percent == 0 || of < 2 {
                true => at * (total / of) + at.min(total % of),
                // The start of equal blocks, less what the first blocks are shorter. One division rounds both, so that no start lies
                // before the one of the previous block.
                false => {
                    let (most, steps) = (u128::from(MOST), of - 1);
                    total * (at * most * steps - percent * at * (of - at)) / (most * of * steps)
                }
            };
            start as u64
        };
        start(block)..start(block + 1)
    }
}

impl ParameterValue for Imbalance {
    const PARAMETER: &'static Parameter = &Parameter::list_of::<Imbalance>(
        "imbalance",
        "PERCENT",
        "Difference of the smallest and the largest block from the message size, 0 to 100 %, each number with rows of its own [default: 0%]",
    )
    .named(Named::AfterSize(if_chosen::<Imbalance>));
    const DEFAULT: Imbalance = Imbalance::NONE;

    fn parse(text: &str) -> Result<Imbalance> {
        text.parse()
    }

    fn text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl FromStr for Imbalance {
    type Err = Error;

    fn from_str(text: &str) -> Result<Imbalance> {
        let percent =
            digits::<u32>(text.strip_suffix('%').unwrap_or(text)).filter(|percent| *percent <= MOST);
        percent.map(Imbalance).ok_or_else(|| {
            Error::usage(format!(
                "--imbalance {text}: is no whole number of percent from 0 to {MOST}, as in --imbalance 50"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(percent: u32, total: u64, blocks: u32) -> Vec<u64> {
        (0..blocks)
            .map(|block| Imbalance(percent).range(total, block, blocks))
            .map(|range| range.end - range.start)
            .collect()
    }

    #[test]
    fn lengths_grow_in_equal_steps() {
        assert_eq!(lengths(50, 300, 3), [50, 100, 150]);
        assert_eq!(lengths(100, 400, 5), [0, 40, 80, 120, 160]);
        assert_eq!(lengths(100, 16, 2), [0, 16]);
        assert_eq!(lengths(100, 7, 1), [7]);
        assert_eq!(lengths(0, 10, 4), [3, 3, 2, 2]);
    }

    #[test]
    fn blocks_make_up_the_whole() {
        for percent in [0, 1, 33, 99, 100] {
            for blocks in 1..9 {
                for total in [0, 1, 5, 8, 1001, (1 << 20) * u64::from(blocks), u64::from(u32::MAX) * 9] {
                    let ranges: Vec<_> =
                        (0..blocks).map(|block| Imbalance(percent).range(total, block, blocks)).collect();
                    assert_eq!((ranges[0].start, ranges[blocks as usize - 1].end), (0, total));
                    assert!(ranges.windows(2).all(|two| two[0].end == two[1].start));
                    assert!(ranges.iter().all(|range| range.start <= range.end), "{percent} {ranges:?}");
                }
            }
        }
    }

    #[test]
    fn a_percentage_is_a_whole_number_up_to_100() {
        assert_eq!("50%".parse::<Imbalance>().unwrap(), "50".parse().unwrap());
        assert_eq!("7".parse::<Imbalance>().unwrap().to_string(), "7%");
        for text in ["", "%", "101", "-1", "0.5", "5%%", "x", "+5"] {
            assert!(text.parse::<Imbalance>().is_err(), "{text:?}");
        }
        assert_eq!(Imbalance::PARAMETER.read("0,50,50%").unwrap().join(" "), "0% 50%");
    }
}
