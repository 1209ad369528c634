//! Groups of ranks that run the same collective operation at the same time.

use std::{fmt, str::FromStr};

use crate::{
    benchmark::{Heading, Named, Parameter, ParameterValue, if_chosen},
    error::{Error, Result},
    unit::{Rank, digits},
};

/// Number of groups of consecutive ranks. All groups have the same number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups(u32);

impl Groups {
    /// One group of all ranks.
    pub const ONE: Groups = Groups(1);
    /// Minimum number of ranks of a group, if there are several.
    const LEAST_RANKS: u32 = 2;

    /// Returns this number of groups; `None` for 0.
    pub const fn new(count: u32) -> Option<Groups> {
        if count == 0 { None } else { Some(Groups(count)) }
    }

    /// Returns the number of groups.
    pub const fn count(self) -> u32 {
        self.0
    }

    /// Returns whether all ranks are one group.
    pub const fn is_one(self) -> bool {
        self.0 == 1
    }

    /// Checks that `ranks` ranks make up this number of equal groups.
    ///
    /// # Errors
    /// [`Error::unsupported`] if they do not.
    pub fn divide(self, ranks: u32) -> Result<()> {
        let Groups(count) = self;
        let least = self.ranks_wanted(Groups::LEAST_RANKS);
        match self.is_one() || (ranks.is_multiple_of(count) && ranks >= least) {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "{count} groups need {least} ranks or a larger multiple of {count}, has {ranks}; start it with -n {least}"
            ))),
        }
    }

    /// Returns the number of ranks of each group of `ranks` ranks, at least 1.
    pub fn size_of_each(self, ranks: u32) -> u32 {
        (ranks / self.0).max(1)
    }

    /// Returns the number of the group of a rank, from 0. [`Groups::divide`] has accepted `ranks`.
    pub fn group_of(self, rank: Rank, ranks: u32) -> u32 {
        rank.0 / self.size_of_each(ranks)
    }

    /// Returns the number of ranks for groups of at least `size` ranks.
    pub fn ranks_wanted(self, size: u32) -> u32 {
        match self.is_one() {
            true => size,
            false => size.max(Groups::LEAST_RANKS).saturating_mul(self.0),
        }
    }
}

impl ParameterValue for Groups {
    const PARAMETER: &'static Parameter = &Parameter::one_of::<Groups>(
        "groups",
        "G",
        "Groups of consecutive ranks that run the same collective operation at the same time, with at least 2 ranks each [default: 1]",
    )
    .named(Named::AfterSize(if_chosen::<Groups>))
    .under(Heading::General)
    .kept_as("rank_groups");
    const DEFAULT: Groups = Groups::ONE;

    fn parse(text: &str) -> Result<Groups> {
        text.parse()
    }

    fn text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Groups {
    type Err = Error;

    fn from_str(text: &str) -> Result<Groups> {
        digits(text).and_then(Groups::new).ok_or_else(|| Error::usage("not a number of groups from 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u32) -> Groups {
        Groups::new(count).unwrap()
    }

    #[test]
    fn groups_are_consecutive_ranks_of_equal_number() {
        for (count, ranks, expected) in [
            (1, 3, vec![0, 0, 0]),
            (2, 4, vec![0, 0, 1, 1]),
            (3, 6, vec![0, 0, 1, 1, 2, 2]),
            (2, 6, vec![0, 0, 0, 1, 1, 1]),
        ] {
            of(count).divide(ranks).unwrap();
            let found: Vec<u32> = (0..ranks).map(|rank| of(count).group_of(Rank(rank), ranks)).collect();
            assert_eq!(found, expected);
            assert_eq!(of(count).size_of_each(ranks) * count, ranks);
        }
    }

    #[test]
    fn every_group_needs_two_ranks() {
        assert!(Groups::ONE.divide(1).is_ok());
        for (count, ranks) in [(2, 2), (2, 3), (2, 5), (3, 3), (3, 4), (4, 6), (u32::MAX, 4)] {
            let error = of(count).divide(ranks).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::Unsupported);
            assert!(error.to_string().contains(&format!("has {ranks}")), "{error}");
        }
        assert!(of(3).divide(4).unwrap_err().to_string().contains("6 ranks or a larger multiple of 3"));
    }

    #[test]
    fn enough_ranks_for_every_group_are_wanted() {
        assert_eq!([1, 2, 3].map(|size| of(3).ranks_wanted(size)), [6, 6, 9]);
        assert_eq!(Groups::ONE.ranks_wanted(1), 1);
        assert_eq!(of(u32::MAX).ranks_wanted(2), u32::MAX);
        assert_eq!(of(8).size_of_each(4), 1);
    }

    #[test]
    fn groups_are_a_number() {
        assert_eq!("4".parse::<Groups>().unwrap().to_string(), "4");
        for text in ["", "0", "-1", "+1", "2:2", "x", "1.5"] {
            assert!(text.parse::<Groups>().is_err(), "{text:?}");
        }
    }
}
