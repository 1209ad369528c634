//! Groups of ranks that run the same collective operation at the same time.

use ombx_record::{
    codec::mixed,
    error::{Error, Result},
    unit::{Rank, digits, parse_numbers},
};

use crate::{
    benchmark::{Heading, Named, Parameter, ParameterValue, Reader, Value, if_chosen},
    team::Team,
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
        if self.is_one() || (ranks.is_multiple_of(count) && ranks >= least) {
            Ok(())
        } else {
            Err(Error::unsupported(format!(
                "{count} groups need {least} ranks or a larger multiple of {count}, has {ranks}; start it \
                 with -n {least}"
            )))
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
        if self.is_one() { size } else { size.max(Groups::LEAST_RANKS).saturating_mul(self.0) }
    }
}

impl ParameterValue for Groups {
    const PARAMETER: &'static Parameter = &Parameter::one_of::<Groups>(
        "groups",
        "G",
        "Groups of consecutive ranks that run the same collective operation at the same time, with at \
         least 2 ranks each [default: 1]",
    )
    .named(Named::AfterSize(if_chosen::<Groups>))
    .under(Heading::General)
    .kept_as("rank_groups");
    const DEFAULT: Groups = Groups::ONE;

    fn parse(text: &str) -> Result<Groups> {
        digits(text).and_then(Groups::new).ok_or_else(|| Error::usage("not a number of groups from 1"))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Matrix whose columns the launcher has filled with ranks, one after the other. The new numbers go along its rows.
///
/// With as many rows as ranks per node, a column is a node, and ranks with consecutive numbers are on different nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankMatrix {
    rows: u32,
    columns: u32,
}

impl RankMatrix {
    /// Returns the number of ranks.
    pub const fn ranks(self) -> u32 {
        self.rows * self.columns
    }

    /// Returns how many consecutive new numbers are in a row.
    pub const fn columns(self) -> u32 {
        self.columns
    }

    /// Returns the launcher's ranks in the order of their new numbers.
    pub fn order(self) -> Vec<Rank> {
        (0..self.ranks()).map(|at| Rank(at % self.columns * self.rows + at / self.columns)).collect()
    }

    /// Returns a team of the same ranks with new numbers. Rank 0 keeps its number. Collective.
    ///
    /// # Errors
    /// Usage error on all ranks if the team has not as many ranks as the matrix.
    pub fn number(self, team: &dyn Team) -> Result<Box<dyn Team>> {
        self.check(team.size())?;
        team.subset(&self.order())?.ok_or_else(|| Error::fabric("a rank is missing in the matrix of ranks"))
    }

    /// Checks that the matrix has this number of ranks.
    ///
    /// # Errors
    /// Usage error if it has not.
    pub fn check(self, ranks: u32) -> Result<()> {
        match self.ranks() {
            own if own == ranks => Ok(()),
            own => Err(Error::usage(format!(
                "a matrix of {} has {own} ranks, but there are {ranks}: choose P and Q whose product is {ranks}",
                self.text()
            ))),
        }
    }
}

impl ParameterValue for RankMatrix {
    const PARAMETER: &'static Parameter =
        &Parameter::one_of::<RankMatrix>("rank_matrix", "PxQ", "Matrix by which ranks are numbered anew")
            .under(Heading::None);
    /// One rank, whose number stays.
    const DEFAULT: RankMatrix = RankMatrix { rows: 1, columns: 1 };

    fn parse(text: &str) -> Result<RankMatrix> {
        let number = |part: &str| part.parse::<u32>().ok().filter(|number| *number > 0);
        let parts = text.split_once('x').and_then(|(rows, columns)| Some((number(rows)?, number(columns)?)));
        match parts {
            Some((rows, columns)) if rows.checked_mul(columns).is_some() => Ok(RankMatrix { rows, columns }),
            _ => Err(Error::usage("not a matrix: give PxQ, as in 4x2 for 4 ranks on each of 2 nodes")),
        }
    }

    fn text(&self) -> String {
        format!("{}x{}", self.rows, self.columns)
    }
}

/// Most pairs of a list.
const MOST: usize = 1 << 20;

/// Reads pairs of numbers.
///
/// # Errors
/// Usage error that names the option and what is no pair.
pub(super) fn pairs(option: &str, text: &str) -> Result<Vec<(u64, u64)>> {
    let all: Vec<(u64, u64)> = text.split(',').map(|part| pair(option, part)).collect::<Result<_>>()?;
    match all.len() {
        0..=MOST => Ok(all),
        more => Err(Error::usage(format!("{option}: {more} pairs are more than {MOST}: give fewer"))),
    }
}

/// Reads one pair of numbers.
fn pair(option: &str, part: &str) -> Result<(u64, u64)> {
    let found = part.split_once(':').and_then(|(one, other)| Some((digits(one)?, digits(other)?)));
    found.ok_or_else(|| {
        Error::usage(format!(
            "{option}: {part:?} is no pair of numbers: give pairs as in 0:8,24:16, or @FILE"
        ))
    })
}

/// Returns a number that differs between most lists of numbers.
pub(super) fn code(numbers: impl Iterator<Item = u64>) -> u16 {
    numbers.fold(1, mixed) as u16
}

/// Maximum number of operations in flight.
const MOST_DEPTH: u32 = 1 << 20;

/// Number of operations in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(pub u32);

impl ParameterValue for Depth {
    const PARAMETER: &'static Parameter = &Parameter::read_by(
        "window",
        "NUMBERS",
        "Operations in flight in bandwidth benchmarks, each number with rows of its own: 64, 1,4,16 \
         (list), 1..64 (doubling)",
        Reader::List(|text| Ok(parse_depths(text)?.into_iter().map(Depth).map(Value::new).collect())),
    )
    .usually("64")
    .under(Heading::General);
    /// Of a case that does not stream.
    const DEFAULT: Depth = Depth(1);

    fn parse(text: &str) -> Result<Depth> {
        match *parse_depths(text)? {
            [depth] => Ok(Depth(depth)),
            _ => Err(Error::usage(format!("{text:?} is not one number of operations in flight"))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Reads a list of numbers of operations in flight: `64`, `1,4,16` or `1..64`, which doubles.
///
/// # Errors
/// Usage error for a malformed list, and for a number that is 0 or too large.
pub fn parse_depths(text: &str) -> Result<Vec<u32>> {
    let bad = || {
        let examples = "use a number such as 64, a list such as 1,4,16, or a range such as 1..64";
        Error::usage(format!("{text:?} is no list of 1 to {MOST_DEPTH} operations in flight: {examples}"))
    };
    let numbers = parse_numbers(text, MOST_DEPTH.into()).ok_or_else(bad)?;
    Ok(numbers.into_iter().map(|number| number as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(count: u32) -> Groups {
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
            groups(count).divide(ranks).unwrap();
            let found: Vec<u32> = (0..ranks).map(|rank| groups(count).group_of(Rank(rank), ranks)).collect();
            assert_eq!(found, expected);
            assert_eq!(groups(count).size_of_each(ranks) * count, ranks);
        }
    }

    #[test]
    fn every_group_needs_two_ranks() {
        assert!(Groups::ONE.divide(1).is_ok());
        for (count, ranks) in [(2, 2), (2, 3), (2, 5), (3, 3), (3, 4), (4, 6), (u32::MAX, 4)] {
            let error = groups(count).divide(ranks).unwrap_err();
            assert_eq!(error.kind(), ombx_record::error::Kind::Unsupported);
            assert!(error.to_string().contains(&format!("has {ranks}")), "{error}");
        }
        assert!(groups(3).divide(4).unwrap_err().to_string().contains("6 ranks or a larger multiple of 3"));
    }

    #[test]
    fn enough_ranks_for_every_group_are_wanted() {
        assert_eq!([1, 2, 3].map(|size| groups(3).ranks_wanted(size)), [6, 6, 9]);
        assert_eq!(Groups::ONE.ranks_wanted(1), 1);
        assert_eq!(groups(u32::MAX).ranks_wanted(2), u32::MAX);
        assert_eq!(groups(8).size_of_each(4), 1);
    }

    #[test]
    fn groups_are_a_number() {
        assert_eq!(Groups::parse("4").unwrap().text(), "4");
        for text in ["", "0", "-1", "+1", "2:2", "x", "1.5"] {
            assert!(Groups::parse(text).is_err(), "{text:?}");
        }
    }
}

#[cfg(test)]
mod rank_matrix_tests {
    use super::*;

    #[test]
    fn numbers_go_along_rows() {
        let order = |text: &str| -> Vec<u32> {
            RankMatrix::parse(text).unwrap().order().into_iter().map(|rank| rank.0).collect()
        };
        assert_eq!(order("2x3"), [0, 2, 4, 1, 3, 5]);
        assert_eq!(order("3x2"), [0, 3, 1, 4, 2, 5]);
        assert_eq!([order("1x4"), order("4x1")], [[0, 1, 2, 3], [0, 1, 2, 3]]);
    }

    #[test]
    fn a_matrix_has_two_numbers_and_all_ranks() {
        for text in ["", "4", "x", "2x", "x2", "0x2", "2x0", "2x2x2", "-1x2", "2X2", "65536x65536"] {
            assert!(RankMatrix::parse(text).is_err(), "{text}");
        }
        let matrix = RankMatrix::parse("2x2").unwrap();
        assert!(matrix.check(4).is_ok());
        let error = matrix.check(6).unwrap_err().to_string();
        assert!(error.contains("2x2 has 4 ranks, but there are 6"), "{error}");
    }
}

#[cfg(test)]
mod pairs_tests {
    use super::*;

    #[test]
    fn pairs_are_read() {
        assert_eq!(pairs("--x", "0:8,24:16").unwrap(), [(0, 8), (24, 16)]);
        for text in ["", "1", "1:", "1:2,", "-1:2", "1:2:3", "1: 2", "a:b", "99999999999999999999:1"] {
            assert!(pairs("--x", text).unwrap_err().to_string().starts_with("--x: "), "{text}");
        }
    }
}

#[cfg(test)]
mod depth_tests {
    use super::*;

    #[test]
    fn depths_are_a_list() {
        assert_eq!(parse_depths("64").unwrap(), [64]);
        assert_eq!(parse_depths("1,4,16").unwrap(), [1, 4, 16]);
        assert_eq!(parse_depths("1..64").unwrap(), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(parse_depths("1..64:x4,3").unwrap(), [1, 4, 16, 64, 3]);
        for text in ["", "0", "0..4", "-1", "1K", "1048577", "x", "1,", "4..1"] {
            assert!(parse_depths(text).unwrap_err().to_string().contains("such as 1,4,16"), "{text}");
        }
        assert_eq!(Depth::PARAMETER.read("1..4").unwrap().join(" "), "1 2 4");
        assert_eq!(Depth::parse("8").unwrap(), Depth(8));
    }
}
