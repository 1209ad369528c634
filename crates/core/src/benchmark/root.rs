//! The root of a collective operation.

use std::{fmt, str::FromStr};

use crate::{
    benchmark::{Heading, Named, Parameter, ParameterValue, if_chosen},
    error::{Error, Result},
    unit::{Rank, digits},
};

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
        text.parse()
    }

    fn text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Root::Fixed(rank) => write!(f, "{rank}"),
            Root::Rotating => f.write_str("rotate"),
        }
    }
}

impl FromStr for Root {
    type Err = Error;

    fn from_str(text: &str) -> Result<Root> {
        match (text, digits(text)) {
            ("rotate", _) => Ok(Root::Rotating),
            (_, Some(rank)) => Ok(Root::Fixed(Rank(rank))),
            _ => Err(Error::usage("a root is the number of a rank, or `rotate`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_rank_or_rotates() {
        for text in ["0", "7", "rotate"] {
            assert_eq!(text.parse::<Root>().unwrap().to_string(), text);
        }
        for text in ["", "-1", "+1", "rot", "1.5"] {
            assert!(text.parse::<Root>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_root_must_exist() {
        assert!(Root::Fixed(Rank(3)).is_among(4).is_ok() && Root::Rotating.is_among(1).is_ok());
        let error = Root::Fixed(Rank(4)).is_among(4).unwrap_err().to_string();
        assert!(error.contains("root 4 is none of the 4 ranks"), "{error}");
    }
}
