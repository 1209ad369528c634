//! The matrix by which the ranks of a run are numbered anew.

use std::{
    fmt::{self, Display, Formatter},
    str::FromStr,
};

use crate::{
    benchmark::{Heading, Parameter, ParameterValue},
    error::{Error, Result},
    team::Team,
    unit::Rank,
};

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
                "a matrix of {self} has {own} ranks, but there are {ranks}: choose P and Q whose product is {ranks}"
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
        text.parse()
    }

    fn text(self) -> String {
        self.to_string()
    }
}

impl Display for RankMatrix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl FromStr for RankMatrix {
    type Err = Error;

    fn from_str(text: &str) -> Result<RankMatrix> {
        let number = |part: &str| part.parse::<u32>().ok().filter(|number| *number > 0);
        let parts = text.split_once('x').and_then(|(rows, columns)| Some((number(rows)?, number(columns)?)));
        match parts {
            Some((rows, columns)) if rows.checked_mul(columns).is_some() => Ok(RankMatrix { rows, columns }),
            _ => Err(Error::usage("not a matrix: give PxQ, as in 4x2 for 4 ranks on each of 2 nodes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_along_rows() {
        let order = |text: &str| -> Vec<u32> {
            text.parse::<RankMatrix>().unwrap().order().into_iter().map(|rank| rank.0).collect()
        };
        assert_eq!(order("2x3"), [0, 2, 4, 1, 3, 5]);
        assert_eq!(order("3x2"), [0, 3, 1, 4, 2, 5]);
        assert_eq!([order("1x4"), order("4x1")], [[0, 1, 2, 3], [0, 1, 2, 3]]);
    }

    #[test]
    fn a_matrix_has_two_numbers_and_all_ranks() {
        for text in ["", "4", "x", "2x", "x2", "0x2", "2x0", "2x2x2", "-1x2", "2X2", "65536x65536"] {
            assert!(text.parse::<RankMatrix>().is_err(), "{text}");
        }
        let matrix: RankMatrix = "2x2".parse().unwrap();
        assert!(matrix.check(4).is_ok());
        let error = matrix.check(6).unwrap_err().to_string();
        assert!(error.contains("2x2 has 4 ranks, but there are 6"), "{error}");
    }
}
