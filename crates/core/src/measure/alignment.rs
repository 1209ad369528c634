//! Alignments: at which positions in the queues of the library the rounds of a row start.
//!
//! Libraries keep messages in rings. A kernel that repeats a fixed number of messages may meet the same positions of a ring in every
//! iteration, and its time is then decided by how many messages were sent before it: those of barriers, of other rows, of the engine.
//! Therefore samples are taken in rounds of equal length, and before each round the ranks exchange empty messages: a random number before
//! the first round of a set, and a fixed one before the others. The headline is the mean of the rounds' levels, a mean over positions.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use ombx_record::{codec::checksum, error::Result, random::SplitMix64, result::Rounds, stats, unit::Rank};

use crate::team::{Shift, Team};

/// Rounds of a set, which is spread over a ring.
pub const SPREAD: u64 = stats::SPREAD as u64;
/// Samples of a round: the largest of these with which a set fits into the time of the row. From 15 on, quartiles tell the levels of rounds
/// from scatter; with fewer than 8, outliers move medians. If an iteration returns to its place in a ring, so does a round.
pub const LENGTHS: [u64; 2] = [16, 8];
/// Further lengths for a fixed number of iterations, of which the drop-in replacements print the mean and others the median.
const OF_FEW: [u64; 2] = [4, 2];
/// A random number of messages is at most this, a multiple of the lengths of usual rings: the shared memory of UCX frees the 64 elements of
/// its queue in halves of 32, and a "fast box" of Open MPI has 4 KiB, in which a message takes 32 bytes or more.
pub(crate) const POSITIONS: u64 = 256;
/// Messages to a rank with a higher number, before each further round. In rings of every power of two up to [`POSITIONS`], the mean of a
/// sawtooth over the positions of a set scatters at most 2/3 as much as over random ones, and the autocorrelation of the levels is at most
/// 0.3. No smaller number does both.
const STEP: u64 = 37;
/// Messages to a rank with a lower number, in turn, with the same properties: the positions of both directions meet in all combinations.
const STEPS_BACK: [u64; 2] = [36, 37];

/// Samples after such messages that do not count: those that follow ranks of which one may wait for the other.
const DROPPED: u64 = 1;

/// Returns the number of messages before a round of a set, which is not the first.
fn step(from: Rank, to: Rank, round: usize) -> u64 {
    if from < to { STEP } else { STEPS_BACK[(round + 1) % 2] }
}

/// Samples that follow one another, and the messages before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Messages before the samples; `None` if ranks exchange none.
    pub shift: Option<Shift>,
    /// Samples that come first and do not count.
    pub dropped: u64,
    /// Samples that count.
    pub samples: u64,
}

impl Part {
    /// Returns samples without messages before them, which all count.
    pub fn plain(samples: u64) -> Part {
        Part { shift: None, dropped: 0, samples }
    }

    /// Returns the number of all samples.
    pub fn all(&self) -> u64 {
        self.dropped + self.samples
    }
}

/// Number of samples of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Affordable {
    /// As many as its time allows.
    UpTo(u64),
    /// A fixed number.
    Exactly(u64),
}

/// How one rank divides the samples of a row.
#[derive(Debug, Clone)]
pub struct Alignment {
    /// `None` if samples are not divided, and no messages precede them.
    rounds: Option<Rounds>,
    rank: Rank,
    /// The rank that this one sends to and the one that it receives from.
    neighbours: [Rank; 2],
    divisions: u64,
}

impl Alignment {
    /// Returns how a rank divides samples; without `rounds`, not at all. `neighbours` are the rank that it sends to and the one that it
    /// receives from.
    pub fn new(rounds: Option<Rounds>, rank: Rank, neighbours: [Rank; 2]) -> Alignment {
        Alignment { rounds, rank, neighbours, divisions: 0 }
    }

    /// Agrees on the rounds of a row that has time for `affordable` samples, or exactly that many. Collective; rank 0 decides.
    pub(crate) fn agree(&mut self, team: &dyn Team, affordable: Affordable, seed: u64) -> Result<()> {
        let (affordable, further) = match affordable {
            Affordable::UpTo(samples) => (samples, &[][..]),
            Affordable::Exactly(samples) => (samples, &OF_FEW[..]),
        };
        let fits = |length: &&u64| **length * SPREAD <= affordable;
        let rounds =
            LENGTHS.iter().chain(further).find(fits).map(|length| Rounds { samples: *length as u32, seed });
        self.rounds = team.broadcast_message(rounds)?;
        Ok(())
    }

    /// Returns the rank that this one sends to and the one that it receives from.
    pub(crate) fn neighbours(&self) -> [Rank; 2] {
        self.neighbours
    }

    /// Returns what result files keep, if the headline is that of rounds; the levels of shorter rounds are not robust.
    pub fn rounds(&self) -> Option<Rounds> {
        self.rounds.filter(|rounds| LENGTHS.contains(&rounds.samples.into()))
    }

    /// Returns the samples of a round, 1 without rounds.
    pub fn round(&self) -> u64 {
        self.rounds.map_or(1, |rounds| u64::from(rounds.samples))
    }

    /// Returns the samples of a set, 1 without rounds.
    pub fn spread(&self) -> u64 {
        self.rounds.map_or(1, |rounds| SPREAD * u64::from(rounds.samples))
    }

    /// Divides the next samples, which begin a set. What one rank sends before a part, its neighbour expects.
    pub fn divide(&mut self, samples: u64) -> Vec<Part> {
        let Some(Rounds { samples: length, seed }) = self.rounds else { return vec![Part::plain(samples)] };
        let [to, from] = self.neighbours;
        let start = |rank: Rank| {
            let mut random = SplitMix64(seed ^ (self.divisions << 32) ^ u64::from(rank.0));
            1 + random.next_u64() % POSITIONS
        };
        let first = Shift { to, sent: start(self.rank), from, received: start(from) };
        self.divisions += 1;
        let length = u64::from(length);
        let rounds = usize::try_from(samples.div_ceil(length)).unwrap_or(usize::MAX);
        let part = |round: usize| {
            let (sent, received) = (step(self.rank, to, round), step(from, self.rank, round));
            let shift = if round == 0 { first } else { Shift { sent, received, ..first } };
            Part {
                shift: Some(shift),
                dropped: DROPPED,
                samples: length.min(samples - length * round as u64),
            }
        };
        (0..rounds).map(part).collect()
    }
}

/// Returns the seed of a row: from that of its launch and its name. A launch without a seed gets a random one.
pub(crate) fn seed(launch: Option<u64>, key: &str) -> u64 {
    let launch = launch.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    SplitMix64(launch ^ checksum(key.as_bytes())).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the positions of a set at which this rank's messages start.
    fn positions(from: Rank, to: Rank) -> Vec<u64> {
        let mut at = 0;
        (0..SPREAD as usize)
            .map(|round| {
                at += if round == 0 { 0 } else { step(from, to, round) };
                at
            })
            .collect()
    }

    /// Returns the standard deviation of the mean of a sawtooth over positions, for all starts, in multiples of that of random positions,
    /// and the autocorrelation of its levels.
    fn spread(ring: u64, positions: &[u64]) -> [f64; 2] {
        let middle = (ring - 1) as f64 / 2.0;
        let (mut squares, mut joint, mut own) = (0.0, 0.0, 0.0);
        for start in 0..ring {
            let levels: Vec<f64> = positions.iter().map(|at| ((start + at) % ring) as f64 - middle).collect();
            squares += (levels.iter().sum::<f64>() / levels.len() as f64).powi(2);
            joint += levels.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / (levels.len() - 1) as f64;
            own += levels.iter().map(|level| level * level).sum::<f64>() / levels.len() as f64;
        }
        let deviation = (squares / ring as f64).sqrt() / ring as f64;
        [deviation / (1.0 / 12.0 / SPREAD as f64).sqrt(), joint / own]
    }

    fn is_spread(positions: &[u64]) -> bool {
        (1..=8).map(|bits| 1_u64 << bits).all(|ring| {
            let [deviation, correlation] = spread(ring, positions);
            deviation <= 2.0 / 3.0 && (ring < 8 || correlation <= 0.3)
        })
    }

    #[test]
    fn the_steps_spread_rounds_over_every_ring() {
        let of_step = |step: u64| (0..SPREAD).map(|round| round * step).collect::<Vec<_>>();
        assert_eq!((1..POSITIONS).find(|step| is_spread(&of_step(*step))), Some(STEP));
        let [up, down] = [(Rank(0), Rank(1)), (Rank(1), Rank(0))].map(|(from, to)| positions(from, to));
        assert_eq!(up, of_step(STEP));
        assert!(is_spread(&down), "{down:?}");
        let parities =
            |bits: [u64; 2]| up.iter().zip(&down).filter(|(up, down)| [**up % 2, **down % 2] == bits).count();
        assert_eq!([[0, 0], [0, 1], [1, 0], [1, 1]].map(parities), [2; 4]);
    }

    #[test]
    fn both_ranks_of_a_message_know_their_number() {
        let rounds = Some(Rounds { samples: 8, seed: 9 });
        let of = |rank, other| Alignment::new(rounds, rank, [other; 2]);
        let (mut one, mut other) = (of(Rank(0), Rank(1)), of(Rank(1), Rank(0)));
        let mut starts = Vec::new();
        for samples in [64, 8, 13] {
            let (parts, answers) = (one.divide(samples), other.divide(samples));
            assert_eq!(parts.iter().map(|part| part.samples).sum::<u64>(), samples);
            for (part, answer) in parts.iter().zip(&answers) {
                let (sent, answered) = (part.shift.unwrap(), answer.shift.unwrap());
                assert_eq!((sent.sent, sent.received), (answered.received, answered.sent));
                assert_eq!((part.samples, sent.to, answered.to), (answer.samples, Rank(1), Rank(0)));
            }
            starts.push(parts[0].shift.unwrap().sent);
        }
        assert!(
            starts.iter().all(|start| (1..=POSITIONS).contains(start)) && starts[0] != starts[1],
            "{starts:?}"
        );
    }

    #[test]
    fn a_row_without_time_for_rounds_is_one() {
        let mut whole = Alignment::new(None, Rank(0), [Rank(1); 2]);
        assert_eq!(whole.divide(7), [Part::plain(7)]);
        assert_eq!((whole.spread(), whole.round()), (1, 1));
    }
}
