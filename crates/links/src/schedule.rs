//! Who meets whom: rounds of disjoint pairs in which every two ranks meet once, by the circle method, and the bisection.

use ombx_core::{measure::shuffle::Shuffle, unit::Rank};

/// Rounds of disjoint pairs over a number of ranks. Everything is computed on the spot: it holds no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    ranks: u32,
    pairing: Pairing,
    shuffle: Option<Shuffle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pairing {
    AllPairs,
    Bisection,
}

/// Whom a rank of `ranks` meets in a round, from 0, of the circle method; `None` for the one that sits out of an odd number.
///
/// With m = N, or N + 1 for odd N, labels i and j below m - 1 meet in round i + j mod (m - 1); the label that would meet
/// itself meets m - 1 instead, which for odd N is nobody. That is a 1-factorisation of the complete graph.
#[inline]
pub fn partner(rank: Rank, round: u32, ranks: u32) -> Option<Rank> {
    let (me, modulus) = (u64::from(rank.0), circle_size(ranks));
    let (round, alone) = (u64::from(round) % modulus, unpaired(round, modulus));
    let other = match me {
        me if me == modulus => alone,
        me if me == alone => modulus,
        me => (round + modulus - me) % modulus,
    };
    (other < u64::from(ranks)).then_some(Rank(other as u32))
}

/// How many labels go round the circle, which is also how many rounds there are; odd.
fn circle_size(ranks: u32) -> u64 {
    (u64::from(ranks).max(2).div_ceil(2)) * 2 - 1
}

/// The label that would meet itself: half of the round, in arithmetic modulo an odd number.
fn unpaired(round: u32, modulus: u64) -> u64 {
    (u64::from(round) % modulus) * modulus.div_ceil(2) % modulus
}

impl Schedule {
    /// Every two ranks meet once.
    pub fn all_pairs(ranks: u32) -> Schedule {
        Schedule { ranks, pairing: Pairing::AllPairs, shuffle: None }
    }

    /// One round: rank i meets i + N/2; of an odd number the last sits out.
    pub fn bisection(ranks: u32) -> Schedule {
        Schedule { pairing: Pairing::Bisection, ..Schedule::all_pairs(ranks) }
    }

    /// The same pairing with the ranks permuted by a seed.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Schedule {
        Schedule { shuffle: Some(Shuffle::new(self.ranks, seed)), ..self }
    }

    /// N - 1 for an even number of ranks, N for an odd one; 1 of a bisection.
    pub fn rounds(&self) -> u32 {
        match self.pairing {
            Pairing::AllPairs => circle_size(self.ranks) as u32,
            Pairing::Bisection => 1,
        }
    }

    /// Pairs in a round.
    pub fn pairs(&self) -> u32 {
        self.ranks / 2
    }

    /// Whom a rank meets in a round.
    #[inline]
    pub fn partner(&self, rank: Rank, round: u32) -> Option<Rank> {
        let label = self.label(rank);
        let other = match self.pairing {
            Pairing::AllPairs => partner(label, round, self.ranks),
            Pairing::Bisection => {
                let half = self.pairs();
                let other = if label.0 < half { label.0 + half } else { label.0 - half };
                (label.0 < 2 * half).then_some(Rank(other))
            }
        };
        other.map(|other| self.rank(other))
    }

    /// One pair of a round, `turn` from 0 to [`Schedule::pairs`] - 1: the lower rank and the higher.
    pub fn pair(&self, round: u32, turn: u32) -> (Rank, Rank) {
        let label = match self.pairing {
            Pairing::Bisection => u64::from(turn),
            Pairing::AllPairs => {
                let modulus = circle_size(self.ranks);
                // In an odd number the lone label sits out, so that its neighbours are the first pair.
                let step = u64::from(turn) + u64::from(self.ranks % 2);
                (unpaired(round, modulus) + step) % modulus
            }
        };
        let one = self.rank(Rank(label as u32));
        let other = self.partner(one, round).unwrap_or(one);
        (Rank(one.0.min(other.0)), Rank(one.0.max(other.0)))
    }

    fn label(&self, rank: Rank) -> Rank {
        self.shuffle.map_or(rank, |s| Rank(s.forth(rank.0)))
    }

    fn rank(&self, label: Rank) -> Rank {
        self.shuffle.map_or(label, |s| Rank(s.back(label.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Every pair exactly once, symmetric, nobody with itself, one bye a round in an odd number.
    fn is_complete(schedule: Schedule, ranks: u32) {
        let n = ranks as usize;
        let mut met = vec![false; n * n];
        assert_eq!(schedule.rounds(), if ranks.is_multiple_of(2) { ranks - 1 } else { ranks });
        for round in 0..schedule.rounds() {
            let mut byes = 0;
            for rank in (0..ranks).map(Rank) {
                let Some(other) = schedule.partner(rank, round) else {
                    byes += 1;
                    continue;
                };
                assert!(other != rank && other.0 < ranks, "{rank} meets {other} of {ranks}");
                assert_eq!(schedule.partner(other, round), Some(rank));
                let before = std::mem::replace(&mut met[rank.0 as usize * n + other.0 as usize], true);
                assert!(!before, "{rank} and {other} of {ranks} meet twice");
            }
            assert_eq!(byes, ranks % 2, "round {round} of {ranks}");
        }
        assert_eq!(met.iter().filter(|m| **m).count(), n * (n - 1));
    }

    #[test]
    fn every_pair_of_few_ranks_meets_once() {
        (2..80).for_each(|ranks| is_complete(Schedule::all_pairs(ranks), ranks));
        (2..40).for_each(|ranks| is_complete(Schedule::all_pairs(ranks).shuffled(7), ranks));
        [1999, 2000].into_iter().for_each(|ranks| is_complete(Schedule::all_pairs(ranks), ranks));
    }

    #[test]
    fn turns_are_the_pairs_of_a_round() {
        for (ranks, seed) in (2..30).flat_map(|n| [(n, None), (n, Some(3))]) {
            for plain in [Schedule::all_pairs(ranks), Schedule::bisection(ranks)] {
                let schedule = seed.map_or(plain, |seed| plain.shuffled(seed));
                for round in 0..schedule.rounds() {
                    let turns: BTreeSet<_> =
                        (0..schedule.pairs()).map(|turn| schedule.pair(round, turn)).collect();
                    assert_eq!(turns.len() as u32, schedule.pairs(), "{schedule:?} in round {round}");
                    assert!(turns.iter().all(|(a, b)| a < b && schedule.partner(*a, round) == Some(*b)));
                }
            }
        }
    }

    #[test]
    fn a_bisection_pairs_halves() {
        let schedule = Schedule::bisection(7);
        let met: Vec<_> = (0..7).map(|r| schedule.partner(Rank(r), 0).map(|p| p.0)).collect();
        assert_eq!(met, [Some(3), Some(4), Some(5), Some(0), Some(1), Some(2), None]);
        assert_eq!((schedule.rounds(), schedule.pairs()), (1, 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn every_pair_meets_once(ranks in 2u32..2000) {
            is_complete(Schedule::all_pairs(ranks), ranks);
        }
    }

    proptest! {
        #[test]
        fn so_it_does_on_the_largest_machines(
            ranks in prop_oneof![Just(1_800_000u32), Just(1_799_999u32), 3_000_000_000u32..],
            a in any::<u32>(), b in any::<u32>(), round in any::<u32>(), seed in any::<u64>(),
        ) {
            let (a, b) = (Rank(a % ranks), Rank(b % ranks));
            for schedule in [Schedule::all_pairs(ranks), Schedule::all_pairs(ranks).shuffled(seed)] {
                let round = round % schedule.rounds();
                match schedule.partner(a, round) {
                    Some(other) => prop_assert_eq!(schedule.partner(other, round), Some(a)),
                    None => prop_assert!(ranks % 2 == 1),
                }
            }
            if a != b {
                // The one round in which these two meet, and no other.
                let modulus = circle_size(ranks);
                let sum = match (u64::from(a.0), u64::from(b.0)) {
                    (a, b) if a == modulus => 2 * b,
                    (a, b) if b == modulus => 2 * a,
                    (a, b) => a + b,
                };
                let meets = (sum % modulus) as u32;
                prop_assert_eq!(partner(a, meets, ranks), Some(b));
                prop_assert!(round % circle_size(ranks) as u32 == meets || partner(a, round % circle_size(ranks) as u32, ranks) != Some(b));
            }
        }
    }
}
