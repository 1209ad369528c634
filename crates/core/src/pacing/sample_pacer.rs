//! Samples of one row that are paced: ranks are synchronised before each.

use ombx_record::{
    error::Result,
    result::{Aggregation, ClockProperties, Figures, Measurement},
    stats::Summary,
};

use crate::{
    benchmark::{Context, Role},
    clock::Clock,
    measure::{
        collect::{RoundSamples, Starts, collect, extend},
        open_kernel::PacedLoop,
        timed_loop::{Iteration, paced},
    },
    pacing::{
        clock_sync::clock_owners,
        mesh::{self, Mesh},
        start::{Chosen, Pacer, Pacing, Start},
        windows::WindowPacing,
    },
    team::Team,
};

/// Samples that a barrier of the library precedes, which is called without a dynamic call before it.
pub(crate) trait BarrierLoop<M>: PacedLoop {
    /// Times batches one by one; see [`paced`].
    fn after_barriers(
        &mut self,
        pacer: &mut Pacer<M>,
        clock: &Clock,
        batch: u64,
        stamps: &mut [u64],
    ) -> Result<()>;
}

impl<I: Iteration, M: Mesh> BarrierLoop<M> for I {
    fn after_barriers(
        &mut self,
        pacer: &mut Pacer<M>,
        clock: &Clock,
        batch: u64,
        stamps: &mut [u64],
    ) -> Result<()> {
        paced(self, pacer, clock, batch, stamps)
    }
}

/// One pacing method for the samples of a row.
pub(crate) struct SamplePacer<'k, M> {
    pace: Pacing,
    pacer: Pacer<M>,
    windows: Option<WindowPacing<'k, M>>,
}

impl<'k, M: Mesh> SamplePacer<'k, M> {
    /// Opens the mesh. Collective, untimed.
    pub(crate) fn open(
        cx: &Context<'_>,
        pace: Pacing,
        windows: Option<WindowPacing<'k, M>>,
    ) -> Result<SamplePacer<'k, M>> {
        Ok(SamplePacer { pace, pacer: Pacer::open(cx)?, windows })
    }

    /// Returns the number of clock readings for `samples` samples.
    pub(crate) const fn readings(samples: u64) -> u64 {
        2 * samples
    }

    /// Returns how the times of ranks are aggregated. `usual` is the aggregation of the layout.
    pub(crate) fn aggregation(&self, usual: Aggregation) -> Aggregation {
        if self.windows.is_some() { Aggregation::Global } else { usual }
    }

    /// Times as many samples as `stamps` has room for. Collective.
    pub(crate) fn timed(
        &mut self,
        iteration: &mut dyn BarrierLoop<M>,
        clock: &Clock,
        batch: u64,
        stamps: &mut [u64],
    ) -> Result<()> {
        let (pace, SamplePacer { pacer, windows, .. }) = (self.pace, self);
        match (pace, windows) {
            (Pacing::Barrier, _) => iteration.after_barriers(pacer, clock, batch, stamps),
            (_, None) => iteration.paced(&mut Chosen(pace, pacer), clock, batch, stamps),
            (_, Some(windows)) => windows.round(pacer, stamps, &mut |pacer, stamps| {
                iteration.paced(&mut Chosen(pace, pacer), clock, batch, stamps)
            }),
        }
    }

    /// Converts the stamps of the last call of [`SamplePacer::timed`] to samples.
    pub(crate) fn samples(&self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let Some(windows) = &self.windows else {
            return RoundSamples::chained(
                stamps.as_chunks().0.iter().map(|[start, end]| clock.nanos(*start, *end)).collect(),
            );
        };
        let spans = windows.spans(stamps);
        let late = WindowPacing::<M>::late(&spans);
        // Ranks wait for the agreed time by the same model. Only rounding makes a start negative.
        let (started_ns, elapsed_ns) =
            spans.iter().map(|(start, end)| (start.max(0.0) as u64, end.max(0.0) as u64)).unzip();
        RoundSamples { elapsed_ns, started_ns, late, ..RoundSamples::default() }
    }

    /// Summarises the samples of all ranks like those of a row. Returns `None` on other ranks than 0. Collective.
    pub(crate) fn summarise(
        &self,
        team: &dyn Team,
        batch: u64,
        legs: u64,
        clock: ClockProperties,
        samples: RoundSamples,
    ) -> Result<Option<Summary>> {
        let mut all = Vec::new();
        extend(&mut all, batch, None, collect(team, self.aggregation(Aggregation::Slowest), vec![samples])?);
        Ok(Measurement::summarise(&all, legs, clock))
    }

    /// Returns the figures of the synchronised clocks, on rank 0. Collective.
    pub(crate) fn figures(&mut self) -> Result<Figures> {
        self.windows.as_mut().map_or_else(|| Ok(Figures::new()), WindowPacing::figures)
    }
}

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
        let all: Option<Vec<Vec<u64>>> = team.gather_messages(&mine)?;
        let mut timed = all.unwrap_or_default();
        timed.retain(|numbers| numbers.len() == PROBES + 2);
        let Some((first, others)) = timed.split_first() else { return Ok(0.0) };
        let one_clock = others.iter().all(|numbers| numbers[0] == first[0]);
        let spread = |probe: usize| {
            let starts = || timed.iter().map(|numbers| numbers[probe + 1]);
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
