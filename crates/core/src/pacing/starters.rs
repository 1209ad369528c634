//! Ranks of several pairs, or with several threads, that start each sample together.

use crate::{
    benchmark::Role,
    error::Result,
    measure::collect::{RoundSamples, Starts},
    pacing::{clock_sync::clock_owners, mesh, pace::Start},
    system::clock::Clock,
    team::Team,
};

/// Minimum time of a sample in nanoseconds. A sample averages over the noise of single iterations, so that the median of samples
/// is total work over wall time.
const LEAST_SAMPLE_NS: f64 = 1_000_000.0;
/// Maximum spread of the starts as a fraction of a sample.
const SPREAD_PART: f64 = 0.01;
/// Barriers that measure the spread. Its median does not see a rank that was delayed once.
const PROBES: usize = 9;

/// The ranks that begin together, seen from this one. It does not depend on the kernel, so that the binary has its code once.
pub(crate) struct Starters<'t> {
    pub(crate) team: &'t dyn Team,
    role: Role,
    /// Lowest rank that reads the same clock as this rank.
    clock_owner: u32,
}

impl<'t> Starters<'t> {
    /// Finds the ranks with the same clock. Collective.
    pub(crate) fn open(team: &'t dyn Team, clock: &Clock, role: Role) -> Result<Starters<'t>> {
        let owners = clock_owners(team, &mesh::clock_name(clock))?;
        let clock_owner = owners.get(team.rank().0 as usize).copied().unwrap_or(team.rank().0);
        Ok(Starters { team, role, clock_owner })
    }

    /// Returns on rank 0 the minimum time of a sample beside which the spread of the starts is small, in nanoseconds. Collective.
    pub(crate) fn least_sample_ns(&self, clock: &Clock) -> Result<f64> {
        Ok(LEAST_SAMPLE_NS.max(self.spread_ns(clock)? / SPREAD_PART))
    }

    /// Returns on rank 0 how far the starts of the timed ranks are apart after a barrier, in nanoseconds. Collective.
    ///
    /// Where the timed ranks have several clocks, it is the time of a barrier, during which every rank has entered and left.
    fn spread_ns(&self, clock: &Clock) -> Result<f64> {
        let team = self.team;
        let mut readings = [0; PROBES + 1];
        for reading in &mut readings {
            team.barrier()?;
            *reading = clock.mark().ticks();
        }
        let mine = match self.role {
            Role::Active => [&[u64::from(self.clock_owner)][..], &readings].concat(),
            Role::Passive => Vec::new(),
        };
        let mine: Vec<u8> = mine.into_iter().flat_map(u64::to_le_bytes).collect();
        let all = team.gather(&mine)?.unwrap_or_default();
        let timed: Vec<&[[u8; 8]]> =
            all.iter().map(|bytes| bytes.as_chunks().0).filter(|words| words.len() == PROBES + 2).collect();
        let Some((first, others)) = timed.split_first() else { return Ok(0.0) };
        let one_clock = others.iter().all(|words| words[0] == first[0]);
        let spread = |probe: usize| {
            let starts = || timed.iter().map(|words| u64::from_le_bytes(words[probe + 1]));
            if one_clock {
                clock.nanos(starts().min().unwrap_or(0), starts().max().unwrap_or(0))
            } else {
                clock.nanos(readings[probe - 1], readings[probe])
            }
        };
        let mut spreads: Vec<u64> = (1..=PROBES).map(spread).collect();
        spreads.sort_unstable();
        Ok(spreads[PROBES / 2] as f64)
    }

    /// Converts pairs of readings of the clock to samples with their starts.
    pub(crate) fn samples(&self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let (elapsed_ns, ticks) =
            stamps.as_chunks().0.iter().map(|[start, end]| (clock.nanos(*start, *end), *start)).unzip();
        let starts = Some(Starts { clock_owner: self.clock_owner, ticks });
        RoundSamples { elapsed_ns, starts, ..RoundSamples::default() }
    }
}

impl Start for Starters<'_> {
    fn wait(&mut self, _: &Clock) -> Result<()> {
        self.team.barrier()
    }
}
