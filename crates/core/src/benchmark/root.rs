//! The root of collective operations that have one.

use std::{fmt, str::FromStr};

use crate::{
    error::{Error, Result},
    unit::Rank,
};

/// Which rank is the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// The same in every iteration.
    Fixed(Rank),
    /// Another in every iteration: rank 0, then 1, and so on around.
    Rotating,
}

impl Root {
    /// The first.
    pub fn first(self) -> Rank {
        match self {
            Root::Fixed(rank) => rank,
            Root::Rotating => Rank(0),
        }
    }

    /// Fails if there is no such rank.
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

impl Default for Root {
    fn default() -> Root {
        Root::Fixed(Rank(0))
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
        match (text, text.parse()) {
            ("rotate", _) => Ok(Root::Rotating),
            (_, Ok(rank)) => Ok(Root::Fixed(Rank(rank))),
            _ => Err(Error::usage("neither the number of a rank nor rotate")),
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
        for text in ["", "-1", "rot", "1.5"] {
            assert!(text.parse::<Root>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_root_must_be_there() {
        assert!(Root::Fixed(Rank(3)).is_among(4).is_ok() && Root::Rotating.is_among(1).is_ok());
        let error = Root::Fixed(Rank(4)).is_among(4).unwrap_err().to_string();
        assert!(error.contains("root 4 is none of the 4 ranks"), "{error}");
    }
}
