//! Schedules of pairs: rounds of disjoint pairs by the circle method, and pairs between two halves of the ranks.

use ombx_record::{random::Shuffle, unit::Rank};
use serde::{Deserialize, Serialize};

/// Rounds of disjoint pairs over a number of ranks. Pairs are computed on demand, without a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    ranks: u32,
    mode: Mode,
    shuffle: Option<Shuffle>,
}

ombx_record::named! {
    /// Selection of pairs, and which of them are measured at the same time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Mode {
        /// All pairs. The pairs of a round are measured at the same time.
        Parallel = "parallel",
        /// All pairs, one at a time. The other ranks sleep.
        Serial = "serial",
        /// All pairs with one rank in each half of the ranks, as LinkTest's bisection. The pairs of a round are measured at the same time.
        /// Of an odd number of ranks, the upper half has one more, and one of it is idle in each round.
        Halves = "halves",
        /// Rank i with i + N/2, all pairs at the same time. The last of an odd number of ranks is idle.
        Bisection = "bisection",
    }
}

impl Mode {
    /// Returns the schedule; the seed permutes the ranks.
    pub fn schedule(self, ranks: u32, seed: Option<u64>) -> Schedule {
        Schedule { ranks, mode: self, shuffle: seed.map(|seed| Shuffle::new(ranks, seed)) }
    }
}

/// Returns the partner of a rank in a round of the circle method, or `None` for the idle rank of an odd number of ranks.
///
/// Let m be N, or N + 1 for odd N. Labels i and j below m - 1 are paired in round i + j mod (m - 1). The label that would
/// be paired with itself gets m - 1 instead, which does not exist for odd N. Rounds are numbered from 0.
/// This is a 1-factorisation of the complete graph.
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

/// Returns the number of labels on the circle. It is odd, and equals the number of rounds.
fn circle_size(ranks: u32) -> u64 {
    (u64::from(ranks).max(2).div_ceil(2)) * 2 - 1
}

/// Returns the label that would be paired with itself: half the round, modulo an odd number.
fn unpaired(round: u32, modulus: u64) -> u64 {
    (u64::from(round) % modulus) * modulus.div_ceil(2) % modulus
}

impl Schedule {
    /// Returns the number of rounds: N - 1 for even N, N for odd N, half of N rounded up between halves, 1 for a bisection.
    pub fn rounds(&self) -> u32 {
        match self.mode {
            Mode::Parallel | Mode::Serial => circle_size(self.ranks) as u32,
            Mode::Halves => self.ranks.div_ceil(2),
            Mode::Bisection => 1,
        }
    }

    /// Returns the number of pairs per round.
    pub fn pairs(&self) -> u32 {
        self.ranks / 2
    }

    /// Returns the partner of a rank in a round, or `None` if it is idle.
    #[inline]
    pub fn partner(&self, rank: Rank, round: u32) -> Option<Rank> {
        let label = self.label(rank);
        let other = match self.mode {
            Mode::Parallel | Mode::Serial => partner(label, round, self.ranks),
            Mode::Halves => {
                let (half, round) = (self.pairs(), round % self.rounds());
                // Lower rank i and upper rank i + round, counted from its half and modulo its size.
                let upper = self.rounds();
                match label.0.checked_sub(half) {
                    None => {
                        Some(Rank(half + ((u64::from(label.0) + u64::from(round)) % u64::from(upper)) as u32))
                    }
                    Some(at) => {
                        let lower = (u64::from(at) + u64::from(upper - round)) % u64::from(upper);
                        (lower < u64::from(half)).then_some(Rank(lower as u32))
                    }
                }
            }
            Mode::Bisection => {
                let half = self.pairs();
                let other = if label.0 < half { label.0 + half } else { label.0 - half };
                (label.0 < 2 * half).then_some(Rank(other))
            }
        };
        other.map(|other| self.rank(other))
    }

    /// Returns a pair of a round, lower rank first. `turn` is from 0 to [`Schedule::pairs`] - 1.
    pub fn pair(&self, round: u32, turn: u32) -> (Rank, Rank) {
        let label = match self.mode {
            Mode::Bisection | Mode::Halves => u64::from(turn),
            Mode::Parallel | Mode::Serial => {
                let modulus = circle_size(self.ranks);
                // For odd N the unpaired label is idle, so the first pair is that of its neighbours.
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
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Asserts that every pair occurs once, symmetrically, and that one rank per round is idle for odd N.
    fn is_complete(schedule: Schedule, ranks: u32) {
        let n = ranks as usize;
        let mut paired = vec![false; n * n];
        assert_eq!(schedule.rounds(), if ranks.is_multiple_of(2) { ranks - 1 } else { ranks });
        for round in 0..schedule.rounds() {
            let mut idle_ranks = 0;
            for rank in (0..ranks).map(Rank) {
                let Some(other) = schedule.partner(rank, round) else {
                    idle_ranks += 1;
                    continue;
                };
                assert!(other != rank && other.0 < ranks, "{rank} is paired with {other} of {ranks}");
                assert_eq!(schedule.partner(other, round), Some(rank));
                let before = std::mem::replace(&mut paired[rank.0 as usize * n + other.0 as usize], true);
                assert!(!before, "{rank} and {other} of {ranks} are paired twice");
            }
            assert_eq!(idle_ranks, ranks % 2, "round {round} of {ranks}");
        }
        assert_eq!(paired.iter().filter(|paired| **paired).count(), n * (n - 1));
    }

    #[test]
    fn every_pair_of_few_ranks_occurs_once() {
        (2..80).for_each(|ranks| is_complete(Mode::Parallel.schedule(ranks, None), ranks));
        (2..40).for_each(|ranks| is_complete(Mode::Parallel.schedule(ranks, Some(7)), ranks));
        [1999, 2000].into_iter().for_each(|ranks| is_complete(Mode::Serial.schedule(ranks, None), ranks));
    }

    #[test]
    fn turns_enumerate_the_pairs_of_a_round() {
        for (ranks, seed) in (2..30).flat_map(|n| [(n, None), (n, Some(3))]) {
            for mode in [Mode::Parallel, Mode::Halves, Mode::Bisection] {
                let schedule = mode.schedule(ranks, seed);
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
    fn every_pair_between_halves_occurs_once_and_no_pair_inside_one() {
        for ranks in 2..60u32 {
            let schedule = Mode::Halves.schedule(ranks, None);
            let mut known = BTreeSet::new();
            for round in 0..schedule.rounds() {
                let pairs: Vec<_> = (0..ranks)
                    .filter_map(|rank| Some((rank, schedule.partner(Rank(rank), round)?.0)))
                    .collect();
                assert_eq!(pairs.len() as u32, 2 * schedule.pairs(), "round {round} of {ranks}");
                for (rank, other) in pairs {
                    assert_eq!(schedule.partner(Rank(other), round), Some(Rank(rank)));
                    assert!((rank < ranks / 2) != (other < ranks / 2), "{rank} and {other} of {ranks}");
                    assert!(known.insert((rank, other)), "{rank} and {other} of {ranks} are paired twice");
                }
            }
            assert_eq!(known.len() as u32, 2 * (ranks / 2) * ranks.div_ceil(2), "{ranks}");
        }
    }

    #[test]
    fn a_bisection_pairs_halves() {
        let schedule = Mode::Bisection.schedule(7, None);
        let partners: Vec<_> = (0..7).map(|r| schedule.partner(Rank(r), 0).map(|p| p.0)).collect();
        assert_eq!(partners, [Some(3), Some(4), Some(5), Some(0), Some(1), Some(2), None]);
        assert_eq!((schedule.rounds(), schedule.pairs()), (1, 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ombx_testkit::seeded() })]
        #[test]
        fn every_pair_occurs_once(ranks in 2u32..800) {
            is_complete(Mode::Parallel.schedule(ranks, None), ranks);
        }
    }

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn every_pair_occurs_once_on_the_largest_machines(
            ranks in prop_oneof![Just(1_800_000u32), Just(1_799_999u32), 3_000_000_000u32..],
            a in any::<u32>(), b in any::<u32>(), round in any::<u32>(), seed in any::<u64>(),
        ) {
            let (a, b) = (Rank(a % ranks), Rank(b % ranks));
            for schedule in [None, Some(seed)].map(|seed| Mode::Parallel.schedule(ranks, seed)) {
                let round = round % schedule.rounds();
                match schedule.partner(a, round) {
                    Some(other) => prop_assert_eq!(schedule.partner(other, round), Some(a)),
                    None => prop_assert!(ranks % 2 == 1),
                }
            }
            if a != b {
                // The only round in which these two are paired.
                let modulus = circle_size(ranks);
                let sum = match (u64::from(a.0), u64::from(b.0)) {
                    (a, b) if a == modulus => 2 * b,
                    (a, b) if b == modulus => 2 * a,
                    (a, b) => a + b,
                };
                let round_of_pair = (sum % modulus) as u32;
                prop_assert_eq!(partner(a, round_of_pair, ranks), Some(b));
                prop_assert!(round % circle_size(ranks) as u32 == round_of_pair || partner(a, round % circle_size(ranks) as u32, ranks) != Some(b));
            }
        }
    }
}
