//! Alignments: at which positions in the queues of the library the rounds of a row start.
//!
//! Libraries keep messages in rings. A kernel that repeats a fixed number of messages may meet the same positions of a ring in every
//! iteration, and its time is then decided by how many messages were sent before it: those of barriers, of other rows, of the engine.
//! Therefore rounds are equally long, and before each one the ranks exchange empty messages: a random number of them before the first of
//! several, and a fixed number before each further one. The headline is the mean of the rounds' medians, which is a mean over positions.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use ombx_record::{codec::checksum, error::Result, random::SplitMix64, result::Rounds, unit::Rank};

use crate::team::{Shift, Team};

/// Rounds that are spread over a ring together.
pub const SPREAD: u64 = 8;
/// Samples of a round: the most of these for which the time of the row has [`SPREAD`] rounds. From 15 on, quartiles tell the levels of
/// rounds from scatter. A round of any of these lengths leaves its position as it was if one iteration does.
pub const LENGTHS: [u64; 3] = [16, 8, 4];
/// A random start is below this number, a multiple of the lengths of usual rings: the shared memory of UCX frees the 64 elements of its
/// queue in halves of 32, and a "fast box" of Open MPI has 4 KiB, in which a message takes 32 bytes or more.
const POSITIONS: u64 = 256;
/// Messages before each round but the first of several. In a ring of any power of two up to [`POSITIONS`], the mean of a sawtooth over
/// [`SPREAD`] positions at this distance scatters at most half as much as over random positions. No smaller number has this property.
const STEP: u64 = 57;

/// Samples that follow one another, and the messages before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Messages before the samples; `None` if ranks exchange none.
    pub shift: Option<Shift>,
    /// Number of samples.
    pub samples: u64,
}

impl Part {
    /// Returns samples without messages before them.
    pub fn plain(samples: u64) -> Part {
        Part { shift: None, samples }
    }
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

    /// Agrees on the rounds of a row that has time for `affordable` samples. Collective; rank 0 decides.
    pub(crate) fn agree(&mut self, team: &dyn Team, affordable: u64, seed: u64) -> Result<()> {
        let is_moved = team.size() > 1 && team.has_queues();
        let fits = |length: &&u64| is_moved && **length * SPREAD <= affordable;
        let rounds = LENGTHS.iter().find(fits).map(|length| Rounds { samples: *length as u32, seed });
        self.rounds = team.broadcast_message(rounds)?;
        Ok(())
    }

    /// Returns what result files keep.
    pub fn rounds(&self) -> Option<Rounds> {
        self.rounds
    }

    /// Returns the samples of a round, 1 without rounds.
    pub fn round(&self) -> u64 {
        self.rounds.map_or(1, |rounds| u64::from(rounds.samples))
    }

    /// Returns the samples of the rounds that are spread over a ring together, 1 without rounds.
    pub fn spread(&self) -> u64 {
        self.rounds.map_or(1, |rounds| SPREAD * u64::from(rounds.samples))
    }

    /// Divides the next samples. What one rank sends before a part, its neighbour expects.
    pub fn divide(&mut self, samples: u64) -> Vec<Part> {
        let Some(Rounds { samples: length, seed }) = self.rounds else { return vec![Part::plain(samples)] };
        let [to, from] = self.neighbours;
        let start = |rank: Rank| {
            let mut random = SplitMix64(seed ^ (self.divisions << 32) ^ u64::from(rank.0));
            random.next_u64() % POSITIONS
        };
        let [sent, received] = [self.rank, from].map(start);
        self.divisions += 1;
        let mut parts = Vec::new();
        let (mut left, mut shift) = (samples, Shift { to, sent, from, received });
        while left > 0 {
            let samples = left.min(u64::from(length));
            parts.push(Part { shift: Some(shift), samples });
            shift = Shift { to, sent: STEP, from, received: STEP };
            left -= samples;
        }
        parts
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

    /// Returns the standard deviation of the mean of a sawtooth over positions at a distance, for all starts.
    fn deviation(ring: u64, step: u64) -> f64 {
        let height = |at: u64| (at % ring) as f64 / ring as f64;
        let mean = |start: u64| (0..SPREAD).map(|i| height(start + i * step)).sum::<f64>() / SPREAD as f64;
        let means: Vec<f64> = (0..ring).map(mean).collect();
        let middle = means.iter().sum::<f64>() / ring as f64;
        (means.iter().map(|mean| (mean - middle).powi(2)).sum::<f64>() / ring as f64).sqrt()
    }

    #[test]
    fn the_step_spreads_rounds_over_every_ring() {
        let rings = || (1..=8).map(|bits| 1 << bits);
        let by_chance = (1.0 / 12.0 / SPREAD as f64).sqrt();
        let is_spread = |step: u64| rings().all(|ring| deviation(ring, step) <= by_chance / 2.0);
        assert_eq!((1..POSITIONS).find(|step| is_spread(*step)), Some(STEP));
    }

    #[test]
    fn both_ranks_of_a_message_know_their_number() {
        let rounds = Some(Rounds { samples: 4, seed: 9 });
        let of = |rank, other| Alignment::new(rounds, rank, [other; 2]);
        let (mut one, mut other) = (of(Rank(0), Rank(1)), of(Rank(1), Rank(0)));
        let mut starts = Vec::new();
        for samples in [32, 4, 7] {
            let (parts, answers) = (one.divide(samples), other.divide(samples));
            assert_eq!(parts.iter().map(|part| part.samples).sum::<u64>(), samples);
            for (part, answer) in parts.iter().zip(&answers) {
                let (sent, answered) = (part.shift.unwrap(), answer.shift.unwrap());
                assert_eq!((sent.sent, sent.received), (answered.received, answered.sent));
                assert_eq!((part.samples, sent.to, answered.to), (answer.samples, Rank(1), Rank(0)));
            }
            starts.push(parts[0].shift.unwrap().sent);
        }
        assert!(starts.iter().all(|start| *start < POSITIONS) && starts[0] != starts[1], "{starts:?}");
    }

    #[test]
    fn a_row_without_time_for_rounds_is_one() {
        let mut whole = Alignment::new(None, Rank(0), [Rank(1); 2]);
        assert_eq!(whole.divide(7), [Part::plain(7)]);
        assert_eq!((whole.spread(), whole.round()), (1, 1));
    }
}
