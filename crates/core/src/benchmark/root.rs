//! The root of a collective operation.

use std::ops::Range;

use ombx_record::{
    error::{Error, Result},
    unit::{Rank, digits},
};

use crate::benchmark::{Heading, Named, Parameter, ParameterValue, if_chosen};

/// Choice of the root rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The same rank in every iteration.
    Fixed(Rank),
    /// The next rank in every iteration, from rank 0, in a cycle.
    Rotating,
}

impl Root {
    /// Returns the root of the first iteration.
    pub fn first(self) -> Rank {
        match self {
            Root::Fixed(rank) => rank,
            Root::Rotating => Rank(0),
        }
    }

    /// Checks that the root exists among `ranks` ranks.
    ///
    /// # Errors
    /// [`Error::unsupported`] if it does not.
    pub fn is_among(self, ranks: u32) -> Result<()> {
        match self {
            Root::Fixed(rank) if rank.0 >= ranks => Err(Error::unsupported(format!(
                "root {rank} is none of the {ranks} ranks, which are 0 to {}",
                ranks.saturating_sub(1)
            ))),
            _ => Ok(()),
        }
    }
}

impl ParameterValue for Root {
    const PARAMETER: &'static Parameter = &Parameter::one_of::<Root>(
        "root",
        "R|rotate",
        "Root of rooted collective operations: a rank, or rotate to change it in each iteration",
    )
    .usually("0")
    .named(Named::AfterSize(if_chosen::<Root>))
    .under(Heading::General);
    const DEFAULT: Root = Root::Fixed(Rank(0));

    fn parse(text: &str) -> Result<Root> {
        match (text, digits(text)) {
            ("rotate", _) => Ok(Root::Rotating),
            (_, Some(rank)) => Ok(Root::Fixed(Rank(rank))),
            _ => Err(Error::usage("a root is the number of a rank, or `rotate`")),
        }
    }

    fn text(&self) -> String {
        match self {
            Root::Fixed(rank) => rank.to_string(),
            Root::Rotating => "rotate".to_owned(),
        }
    }
}

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
        self.start(total, block, blocks)..self.start(total, block + 1, blocks)
    }

    /// Returns the start of block `block` of `blocks`, which is the end of the block before it.
    fn start(self, total: u64, block: u32, blocks: u32) -> u64 {
        let [total, at, of, percent] = [total, block.into(), blocks.into(), self.0.into()].map(u128::from);
        let start = if percent == 0 || of < 2 {
            at * (total / of) + at.min(total % of)
        } else {
            // The start of equal blocks, less what the first blocks are shorter. One division rounds both, so that no start lies
            // before the one of the previous block.
            let (most, steps) = (u128::from(MOST), of - 1);
            total * (at * most * steps - percent * at * (of - at)) / (most * of * steps)
        };
        start as u64
    }
}

impl ParameterValue for Imbalance {
    const PARAMETER: &'static Parameter = &Parameter::list_of::<Imbalance>(
        "imbalance",
        "PERCENT",
        "Difference of the smallest and the largest block from the message size, 0 to 100 %, each number \
         with rows of its own [default: 0%]",
    )
    .named(Named::AfterSize(if_chosen::<Imbalance>));
    const DEFAULT: Imbalance = Imbalance::NONE;

    fn parse(text: &str) -> Result<Imbalance> {
        let percent =
            digits::<u32>(text.strip_suffix('%').unwrap_or(text)).filter(|percent| *percent <= MOST);
        percent.map(Imbalance).ok_or_else(|| {
            Error::usage(format!(
                "--imbalance {text}: is no whole number of percent from 0 to {MOST}, as in --imbalance 50"
            ))
        })
    }

    fn text(&self) -> String {
        format!("{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_rank_or_rotates() {
        for text in ["0", "7", "rotate"] {
            assert_eq!(Root::parse(text).unwrap().text(), text);
        }
        for text in ["", "-1", "+1", "rot", "1.5"] {
            assert!(Root::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_root_must_exist() {
        assert!(Root::Fixed(Rank(3)).is_among(4).is_ok() && Root::Rotating.is_among(1).is_ok());
        let error = Root::Fixed(Rank(4)).is_among(4).unwrap_err().to_string();
        assert!(error.contains("root 4 is none of the 4 ranks"), "{error}");
    }
}

#[cfg(test)]
mod imbalance_tests {
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
        assert_eq!(Imbalance::parse("50%").unwrap(), Imbalance::parse("50").unwrap());
        assert_eq!(Imbalance::parse("7").unwrap().text(), "7%");
        for text in ["", "%", "101", "-1", "0.5", "5%%", "x", "+5"] {
            assert!(Imbalance::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(Imbalance::PARAMETER.read("0,50,50%").unwrap().join(" "), "0% 50%");
    }
}
