//! Samples of one row that are paced: ranks are synchronised before each.

use crate::{
    benchmark::{Aggregation, Context, Figures},
    error::Result,
    measure::{
        collect::{RoundSamples, collect, extend},
        opened::PacedLoop,
        timed_loop::{Iteration, paced},
    },
    pacing::{
        mesh::Mesh,
        pace::{Barrier, Chosen, Pacer, Pacing},
        windows::WindowPacing,
    },
    result::Measurement,
    stats::Summary,
    system::clock::{Clock, Facts},
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
        paced::<I, Barrier, M>(self, pacer, clock, batch, stamps)
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
        (legs, clock): (u64, Facts),
        samples: RoundSamples,
    ) -> Result<Option<Summary>> {
        let mut all = Vec::new();
        extend(&mut all, batch, collect(team, self.aggregation(Aggregation::Slowest), vec![samples])?);
        Ok(Measurement::summarise(&all, legs, clock))
    }

    /// Returns the figures of the synchronised clocks, on rank 0. Collective.
    pub(crate) fn figures(&mut self) -> Result<Figures> {
        self.windows.as_mut().map_or_else(|| Ok(Figures::new()), WindowPacing::figures)
    }
}
