//! Samples of one round on one rank, and their gathering on rank 0; the same for checks.

use std::{collections::BTreeMap, time::Duration};

use ombx_host::environment::Counters;
use ombx_record::{
    codec::{self, checksum},
    error::{Error, Result},
    result::{
        Aggregation, Check, ClockProperties, ConnectionCounters, Interval, Measurement, Mismatch, RoundTrips,
        Rounds, Samples,
    },
    unit::Rank,
};
use serde::{Deserialize, Serialize};

use crate::{clock::Clock, team::Team};

/// Samples of one thread of one rank in one round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundSamples {
    /// Time of every sample. With an agreed start: from that start to this rank's end.
    pub elapsed_ns: Vec<u64>,
    /// Time from the agreed start of every sample to this rank's start; empty without agreed starts. Of several pairs, after
    /// gathering: time from the first start on this rank's clock to this rank's start.
    pub started_ns: Vec<u64>,
    /// Starts of the samples of several pairs.
    pub starts: Option<Starts>,
    /// Numbers of the samples that this rank started late.
    pub late: Vec<u64>,
    /// Time of the round on this rank, of which every sample is a part; 0 if it is unknown.
    pub wall_ns: u64,
    /// Round trips that alternate with the samples.
    pub round_trips: Option<RoundTrips>,
}

/// Raw readings at the start of each sample. They are comparable between ranks that read the same clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Starts {
    /// Lowest rank that reads the same clock.
    pub clock_owner: u32,
    /// Reading at the start of each sample.
    pub ticks: Vec<u64>,
}

/// Samples of several rows, which one pass over positions in the queues of the library has taken.
pub(crate) struct Pass {
    /// On rank 0, those of every timed rank at each position whose row is still to come.
    pub(crate) samples: BTreeMap<u64, Vec<Samples>>,
    /// Iterations of the pass.
    pub(crate) iterations: u64,
    /// Time of one position.
    pub(crate) spent: Duration,
    /// Time of the pass.
    pub(crate) wall: Duration,
    /// Iterations per sample.
    pub(crate) batch: u64,
    /// Counters of the scheduler on this rank during the pass.
    pub(crate) counters: Counters,
}

/// Rank and thread.
type ThreadId = (u32, u32);

impl RoundSamples {
    /// Returns samples that have neither agreed starts nor round trips.
    pub fn chained(elapsed_ns: Vec<u64>) -> RoundSamples {
        RoundSamples { elapsed_ns, ..RoundSamples::default() }
    }

    /// Appends the samples of a later round.
    pub fn append(&mut self, later: RoundSamples) {
        let before = self.elapsed_ns.len() as u64;
        self.late.extend(later.late.iter().map(|sample| before + sample));
        self.elapsed_ns.extend(later.elapsed_ns);
        self.started_ns.extend(later.started_ns);
        self.wall_ns += later.wall_ns;
        match (&mut self.starts, later.starts) {
            (Some(known), Some(more)) => known.ticks.extend(more.ticks),
            (known, more) => *known = known.take().or(more),
        }
        append_trips(&mut self.round_trips, later.round_trips);
    }

    /// Drops the first samples.
    pub(crate) fn skip(&mut self, samples: usize) {
        let first = |times: &mut Vec<u64>| drop(times.drain(..samples.min(times.len())));
        first(&mut self.elapsed_ns);
        first(&mut self.started_ns);
        self.starts.iter_mut().for_each(|starts| first(&mut starts.ticks));
        self.round_trips.iter_mut().for_each(|trips| first(&mut trips.elapsed_ns));
        let dropped = samples as u64;
        self.late = self.late.iter().filter_map(|sample| sample.checked_sub(dropped)).collect();
    }

    fn to_bytes(&self) -> Vec<u8> {
        sealed(&codec::encode(self))
    }

    /// Decodes a round; `None` if it is malformed, as from another build of ombx, differs from its checksum, or has a sample that is
    /// longer than the round.
    fn from_bytes(bytes: &[u8]) -> Option<RoundSamples> {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return None;
        }
        let round: RoundSamples = codec::decode(content)?;
        let samples = round.elapsed_ns.len();
        let fits = round.starts.as_ref().is_none_or(|starts| starts.ticks.len() == samples)
            && (round.started_ns.is_empty() || round.started_ns.len() == samples)
            && round.late.iter().all(|at| *at < samples as u64);
        (fits && round.is_possible()).then_some(round)
    }

    /// Returns whether no sample is longer than the round. Agreed starts are converted between clocks, hence the tolerance.
    fn is_possible(&self) -> bool {
        let longest = self.wall_ns.saturating_add(self.wall_ns / 64).saturating_add(1000);
        let started = self.started_ns.iter().copied().chain(std::iter::repeat(0));
        self.wall_ns == 0
            || self.elapsed_ns.iter().zip(started).all(|(end, start)| end.saturating_sub(start) <= longest)
    }
}

/// Appends the checksum of a message.
pub(crate) fn sealed(content: &[u8]) -> Vec<u8> {
    [content, &checksum(content).to_le_bytes()].concat()
}

/// Gathers a round of every timed rank on rank 0; returns nothing on other ranks.
///
/// Collective, except for [`Aggregation::Origin`].
pub(crate) fn collect(
    team: &dyn Team,
    aggregation: Aggregation,
    round: Vec<RoundSamples>,
) -> Result<Vec<(ThreadId, RoundSamples)>> {
    if aggregation == Aggregation::Origin {
        let mine = if team.rank() == Rank(0) { round } else { Vec::new() };
        return Ok((0..).zip(mine).map(|(thread, samples)| ((0, thread), samples)).collect());
    }
    let mine = round.first().map(RoundSamples::to_bytes).unwrap_or_default();
    drop(round);
    let gathered = team.gather(&mine)?.unwrap_or_default();
    let timed = (0..).zip(gathered).filter(|(_, bytes)| !bytes.is_empty());
    let mut all = timed
        .map(|(rank, bytes)| read_round(rank, &bytes).map(|samples| ((rank, 0), samples)))
        .collect::<Result<Vec<_>>>()?;
    if aggregation == Aggregation::Global {
        count_from_first_start(&mut all);
    }
    Ok(all)
}

/// Reads the round that a rank has sent.
fn read_round(rank: u32, bytes: &[u8]) -> Result<RoundSamples> {
    RoundSamples::from_bytes(bytes).ok_or_else(|| {
        Error::fabric(format!(
            "the samples of rank {rank} did not arrive as they were sent: start the same build of ombx on \
             every rank, and check this MPI library or network if it is the same"
        ))
    })
}

/// Replaces the readings at the starts of several pairs by the times since the first start on the same clock.
pub(crate) fn compare_starts(all: &mut [(ThreadId, RoundSamples)], clock: &Clock) {
    let mut first: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for starts in all.iter().filter_map(|(_, round)| round.starts.as_ref()) {
        let known = first.entry(starts.clock_owner).or_insert_with(|| starts.ticks.clone());
        known.iter_mut().zip(&starts.ticks).for_each(|(first, start)| *first = (*first).min(*start));
    }
    for (_, round) in all {
        let Some(starts) = round.starts.take() else { continue };
        let Some(first) = first.get(&starts.clock_owner) else { continue };
        round.started_ns =
            first.iter().zip(&starts.ticks).map(|(first, start)| clock.nanos(*first, *start)).collect();
    }
}

/// Makes every time start when the first rank started. The maximum over ranks is then the time of the operation.
fn count_from_first_start(all: &mut [(ThreadId, RoundSamples)]) {
    let samples = all.iter().map(|(_, round)| round.started_ns.len()).min().unwrap_or(0);
    for at in 0..samples {
        let first = all.iter().map(|(_, round)| round.started_ns[at]).min().unwrap_or(0);
        for (_, round) in all.iter_mut() {
            round.elapsed_ns[at] = round.elapsed_ns[at].saturating_sub(first);
        }
    }
    all.iter_mut().for_each(|(_, round)| round.started_ns.clear());
}

/// Appends a round to the samples of each rank and thread.
pub(crate) fn extend(
    all: &mut Vec<Samples>,
    batch: u64,
    rounds: Option<Rounds>,
    new: Vec<(ThreadId, RoundSamples)>,
) {
    for (at, ((rank, thread), new)) in new.into_iter().enumerate() {
        if all.len() == at {
            all.push(Samples { rank, thread, batch, rounds, ..Samples::default() });
        }
        let samples = &mut all[at];
        let before = samples.elapsed_ns.len() as u64;
        samples.late.extend(new.late.iter().map(|sample| before + sample));
        samples.elapsed_ns.extend(new.elapsed_ns);
        samples.started_ns.extend(new.started_ns);
        append_trips(&mut samples.round_trips, new.round_trips);
    }
}

fn append_trips(known: &mut Option<RoundTrips>, more: Option<RoundTrips>) {
    match (known, more) {
        (Some(known), Some(more)) => known.elapsed_ns.extend(more.elapsed_ns),
        (known, more) => *known = known.take().or(more),
    }
}

/// What a rank says of a check that has not passed.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum CheckNote {
    Unsupported,
    Failed(Mismatch),
}

/// Returns the worst check of any rank, on every rank: a mismatch, else an unsupported check. Collective.
pub(crate) fn first_mismatch(team: &dyn Team, mine: Check) -> Result<Check> {
    let mine = match mine {
        Check::Passed | Check::Off => None,
        Check::Unsupported => Some(CheckNote::Unsupported),
        Check::Failed(mismatch) => Some(CheckNote::Failed(Mismatch { rank: team.rank(), ..mismatch })),
    };
    let found = team.gather_some(mine.as_ref())?.into_iter().map(|(_, note)| note);
    let worst = found.reduce(|worst, note| match note {
        CheckNote::Unsupported => worst,
        CheckNote::Failed(_) => note,
    });
    Ok(match team.broadcast_message(worst)? {
        None => Check::Passed,
        Some(CheckNote::Unsupported) => Check::Unsupported,
        Some(CheckNote::Failed(mismatch)) => Check::Failed(mismatch),
    })
}

/// The interval of a row that is being filled. Only rank 0 has samples.
pub(crate) struct Intervals {
    length: Duration,
    /// The row without samples.
    row: Measurement,
    samples: Vec<Samples>,
    from: Duration,
    /// End of the interval: a multiple of the length.
    to: Duration,
    /// Retransmits before the interval.
    retransmits: u64,
    /// Division of the samples into rounds.
    pub(crate) rounds: Option<Rounds>,
}

impl Intervals {
    pub(crate) fn new(length: Duration, row: &Measurement) -> Intervals {
        let (row, from, to) = (row.clone(), Duration::ZERO, length);
        Intervals { length, row, samples: Vec::new(), from, to, retransmits: 0, rounds: None }
    }

    /// Returns the counters now, with the retransmits since the last call. The first call is before the first interval.
    pub(crate) fn count(&mut self, now: ConnectionCounters) -> ConnectionCounters {
        let before = std::mem::replace(&mut self.retransmits, now.retransmits);
        ConnectionCounters { retransmits: now.retransmits.saturating_sub(before), ..now }
    }

    /// Returns how many of the samples of a round fit into the rest of the interval, at least one. `spent` is the time of sampling so
    /// far, and `sample_ns` that of a sample.
    pub(crate) fn part(&self, round: u64, spent: Duration, sample_ns: f64) -> u64 {
        let left = self.to.saturating_sub(spent);
        let fitting = (left.as_nanos() as f64 / sample_ns.max(1.0)).ceil() as u64;
        round.min(fitting.max(1))
    }

    /// Adds the samples of a round. Returns the figure of the interval if the round has ended it. `spent` is the time of sampling so far.
    pub(crate) fn add(
        &mut self,
        batch: u64,
        legs: u64,
        clock: ClockProperties,
        round: Vec<((u32, u32), RoundSamples)>,
        spent: Duration,
    ) -> Option<Interval> {
        extend(&mut self.samples, batch, self.rounds, round);
        if spent < self.to {
            return None;
        }
        let passed = spent.as_nanos() / self.length.as_nanos().max(1);
        self.to = self.length * u32::try_from(passed + 1).unwrap_or(u32::MAX);
        Some(self.interval(legs, clock, spent))
    }

    /// Returns the figure of the interval that the end of the row cuts short, if it is the greater part of one.
    pub(crate) fn last(&mut self, legs: u64, clock: ClockProperties, spent: Duration) -> Option<Interval> {
        let is_long = spent.saturating_sub(self.from) > self.length / 2;
        is_long.then(|| self.interval(legs, clock, spent))
    }

    /// Returns the figure of the samples since the last interval.
    fn interval(&mut self, legs: u64, clock: ClockProperties, spent: Duration) -> Interval {
        self.row.summary = Measurement::summarise(&std::mem::take(&mut self.samples), legs, clock);
        let time = [std::mem::replace(&mut self.from, spent), spent];
        Interval {
            bench: self.row.bench.clone(),
            bytes: self.row.bytes,
            time,
            metric: self.row.metric,
            median: self.row.headline().map(|headline| headline.value),
            connections: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_round_decodes() {
        let round_trips = Some(RoundTrips { halves: 2, batch: 3, elapsed_ns: vec![7, 8] });
        let (elapsed_ns, late) = (vec![5, 6], vec![1]);
        let taken = RoundSamples { elapsed_ns, late, wall_ns: 20, round_trips, ..RoundSamples::default() };
        let bytes = taken.to_bytes();
        assert_eq!(RoundSamples::from_bytes(&bytes), Some(taken));
        assert!((0..bytes.len()).all(|cut| RoundSamples::from_bytes(&bytes[..cut]).is_none()));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RoundSamples::from_bytes(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn leading_samples_are_dropped_with_all_that_belongs_to_them() {
        let starts = Some(Starts { clock_owner: 0, ticks: vec![1, 2, 3] });
        let round_trips = Some(RoundTrips { halves: 1, batch: 1, elapsed_ns: vec![7, 8, 9] });
        let (elapsed_ns, late) = (vec![90, 5, 6], vec![0, 2]);
        let mut round = RoundSamples { elapsed_ns, starts, late, round_trips, ..RoundSamples::default() };
        round.skip(1);
        assert_eq!((round.elapsed_ns, round.late), (vec![5, 6], vec![1]));
        assert_eq!(round.starts.map(|starts| starts.ticks), Some(vec![2, 3]));
        assert_eq!(round.round_trips.map(|trips| trips.elapsed_ns), Some(vec![8, 9]));
    }

    #[test]
    fn a_malformed_round_is_refused() {
        let of = |elapsed: &[u64], started: &[u64], late: &[u64]| {
            let [elapsed_ns, started_ns, late] = [elapsed, started, late].map(<[u64]>::to_vec);
            RoundSamples::from_bytes(
                &RoundSamples { elapsed_ns, started_ns, late, ..RoundSamples::default() }.to_bytes(),
            )
        };
        assert!(of(&[1, 2], &[3, 4], &[1]).is_some());
        assert_eq!(
            (of(&[1, 2], &[3], &[]), of(&[1], &[3, 4], &[]), of(&[1, 2], &[], &[2])),
            (None, None, None)
        );
        // The length says more samples than there are bytes.
        assert!(RoundSamples::from_bytes(&sealed(&u64::MAX.to_le_bytes())).is_none());
    }

    #[test]
    fn a_sample_that_is_longer_than_its_round_is_refused() {
        let of = |elapsed: u64, started_ns: Vec<u64>, wall_ns| {
            let round =
                RoundSamples { elapsed_ns: vec![9, elapsed], started_ns, wall_ns, ..RoundSamples::default() };
            RoundSamples::from_bytes(&round.to_bytes()).is_some()
        };
        assert!(of(64_000, vec![], 64_000) && !of(70_000, vec![], 64_000));
        // It started long after the agreed time.
        assert!(of(1_000_000, vec![0, 940_000], 64_000) && !of(1_000_000, vec![0, 900_000], 64_000));
        assert!(of(17_592_000_000_000, vec![], 0), "the time of the round is unknown");
    }

    #[test]
    fn an_operation_lasts_from_the_first_start_to_the_last_end() {
        let of = |started: u64, ended: u64| RoundSamples {
            elapsed_ns: vec![ended],
            started_ns: vec![started],
            ..RoundSamples::default()
        };
        // The first starts 10 after the agreed moment and ends at 60; the second starts at 30 and ends at 100.
        let mut all = vec![((0, 0), of(10, 60)), ((1, 0), of(30, 100))];
        count_from_first_start(&mut all);
        assert_eq!([all[0].1.elapsed_ns[0], all[1].1.elapsed_ns[0]], [50, 90]);
    }

    #[test]
    fn starts_are_compared_on_each_clock() {
        let of = |clock_owner, ticks: [u64; 2]| RoundSamples {
            elapsed_ns: vec![9, 9],
            starts: Some(Starts { clock_owner, ticks: ticks.to_vec() }),
            ..RoundSamples::default()
        };
        let rounds = [of(0, [105, 200]), of(0, [100, 230]), of(2, [7, 9])];
        let sent = rounds.iter().map(|round| RoundSamples::from_bytes(&round.to_bytes()).unwrap());
        let mut all: Vec<_> = (0..).map(|rank| (rank, 0)).zip(sent).collect();
        compare_starts(&mut all, &Clock::manual(1).0);
        let started: Vec<_> = all.into_iter().map(|(_, round)| round.started_ns).collect();
        assert_eq!(started, [[5, 0], [0, 30], [0, 0]]);
    }

    #[test]
    fn numbers_of_late_samples_continue_over_rounds() {
        let taken = RoundSamples { elapsed_ns: vec![7, 7, 7], late: vec![0, 2], ..RoundSamples::default() };
        let mut all = Vec::new();
        extend(&mut all, 1, None, vec![((4, 0), taken.clone())]);
        extend(&mut all, 1, None, vec![((4, 0), taken)]);
        assert_eq!((all[0].rank, all[0].elapsed_ns.len(), &all[0].late), (4, 6, &vec![0, 2, 3, 5]));
    }
}
