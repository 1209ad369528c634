//! Which ranks take part in a benchmark, what each does, and how their times combine.

use crate::{
    error::{Error, Result},
    kernel::Role,
    unit::Rank,
};

/// The shape of a benchmark over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Rank 0 is timed, rank 1 answers; others stay idle.
    Pair,
    /// Ranks 0 to P-1 are timed, rank i + P answers rank i; P is `--pairs`, else this. A last odd rank stays idle.
    Pairs(Pairs),
    /// Every rank is timed.
    Everyone {
        /// The fewest that make sense.
        least: u32,
    },
}

/// How many pairs there are when the user does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// One.
    One,
    /// As many as the ranks allow.
    Most,
}

/// How the times of timed ranks become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// Rank 0's clock.
    Origin,
    /// For each sample the slowest pair.
    Pairs,
    /// For each sample the slowest rank.
    Slowest,
}

impl Across {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Across::Origin => "origin",
            Across::Pairs => "pairs",
            Across::Slowest => "slowest",
        }
    }
}

/// A layout laid over a number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seating {
    /// Ranks that take part, from 0.
    pub ranks: u32,
    /// Pairs among them; 1 where there are none.
    pub pairs: u32,
    layout: Layout,
}

impl Layout {
    /// Ranks that `ombx run` starts when the user does not say.
    pub const fn ranks_wanted(self, pairs: Option<u32>) -> u32 {
        match (self, pairs) {
            (Layout::Pair, _) => 2,
            (Layout::Pairs(_), None) => 2,
            (Layout::Pairs(_), Some(pairs)) => pairs.saturating_mul(2),
            (Layout::Everyone { least }, _) => least,
        }
    }

    /// Lays it over `available` ranks.
    pub fn seat(self, available: u32, pairs: Option<u32>) -> Result<Seating> {
        let short = |need: u32| {
            Err(Error::unsupported(format!("needs {need} ranks, has {available}; start it with -n {need}")))
        };
        match self {
            Layout::Pair if available < 2 => short(2),
            Layout::Pair => Ok(Seating { ranks: 2, pairs: 1, layout: self }),
            Layout::Pairs(usual) => {
                let most = match usual {
                    Pairs::One => 1,
                    Pairs::Most => (available / 2).max(1),
                };
                let pairs = pairs.unwrap_or(most);
                match pairs.checked_mul(2) {
                    Some(ranks) if ranks <= available => Ok(Seating { ranks, pairs, layout: self }),
                    need => short(need.unwrap_or(u32::MAX)),
                }
            }
            Layout::Everyone { least } if available < least => short(least),
            Layout::Everyone { .. } => Ok(Seating { ranks: available, pairs: 1, layout: self }),
        }
    }

    /// Whether `--pairs` means something to it.
    pub const fn has_pairs(self) -> bool {
        matches!(self, Layout::Pairs(_))
    }

    /// How times combine.
    pub const fn across(self) -> Across {
        match self {
            Layout::Pair | Layout::Pairs(Pairs::One) => Across::Origin,
            Layout::Pairs(Pairs::Most) => Across::Pairs,
            Layout::Everyone { .. } => Across::Slowest,
        }
    }

    /// In words, for `ombx list`.
    pub fn describe(self) -> String {
        match self {
            Layout::Pair => "2".into(),
            Layout::Pairs(_) => "2 x pairs".into(),
            Layout::Everyone { least } => format!("{least}.."),
        }
    }
}

impl Seating {
    /// How times combine: several pairs have several clocks.
    pub const fn across(&self) -> Across {
        if self.pairs > 1 { Across::Pairs } else { self.layout.across() }
    }

    /// What a rank does and with whom.
    pub fn role(&self, rank: Rank) -> (Role, Rank) {
        match self.layout {
            Layout::Everyone { .. } => (Role::Active, rank),
            Layout::Pair | Layout::Pairs(_) if rank.0 < self.pairs => {
                (Role::Active, Rank(rank.0 + self.pairs))
            }
            Layout::Pair | Layout::Pairs(_) => (Role::Passive, Rank(rank.0 - self.pairs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_active_rank_has_a_passive_peer_that_knows_it() {
        for available in 2..9 {
            let seating = Layout::Pairs(Pairs::Most).seat(available, None).unwrap();
            assert_eq!(seating.ranks, available / 2 * 2);
            for rank in (0..seating.ranks).map(Rank) {
                let (role, peer) = seating.role(rank);
                let (other, back) = seating.role(peer);
                assert_ne!(role, other);
                assert_eq!(back, rank);
            }
        }
    }

    #[test]
    fn too_few_ranks_are_refused_with_the_number_needed() {
        let error = Layout::Pairs(Pairs::Most).seat(4, Some(9)).unwrap_err();
        assert!(error.to_string().contains("needs 18 ranks, has 4"), "{error}");
        assert!(Layout::Pair.seat(1, None).is_err());
        assert!(Layout::Pairs(Pairs::Most).seat(4, Some(u32::MAX)).is_err());
    }
}
