//! Windows: times at which all ranks start together, on one clock, and how long each must be.

use std::{cell::RefCell, rc::Rc};

use crate::{
    benchmark::figure::{Figure, Figures},
    error::Result,
    pacing::{
        clock_sync::{Model, Residual, Sync},
        mesh::Mesh,
        pace::Pacer,
    },
    team::Team,
};

/// Samples after which the next start is agreed on anew: a rank that was held up catches up there.
const TOGETHER: usize = 20;
/// From agreeing on a start to that start, so that every rank knows of it in time.
const LEAD_NS: f64 = 100_000.0;
/// A rank that starts later than this after the agreed time is late.
const LATE_NS: f64 = 500.0;
/// A window before anything is known of the operation.
const FIRST_NS: f64 = 1_000_000.0;
/// Part of a window that the operation may take, as a factor; what is added for the ends of waiting.
const SLACK: (f64, f64) = (2.0, 2_000.0);
/// The longest that slack may become where ranks are late in spite of it.
const MOST_SLACK: f64 = 64.0;
/// Of a round's starts, the part that may be late before windows are made longer.
const LATE_PART: f64 = 0.02;

/// Starts at equal distances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Starts {
    model: Model,
    next_ns: f64,
    length_ns: f64,
}

impl Default for Starts {
    fn default() -> Starts {
        Starts { model: Model::default(), next_ns: 0.0, length_ns: FIRST_NS }
    }
}

impl Starts {
    /// The next start as a raw reading of this rank's clock.
    #[inline(always)]
    pub(crate) fn next_ticks(&mut self) -> u64 {
        let start = self.next_ns;
        self.next_ns += self.length_ns;
        self.model.ticks(start)
    }
}

/// What ranks know of the time of all, for every row of a benchmark.
pub(crate) type Shared<'k, M> = Rc<RefCell<Sync<'k, M>>>;

/// What a row that is measured in windows knows beside its samples.
pub(crate) struct Windows<'k, M> {
    team: &'k dyn Team,
    sync: Shared<'k, M>,
    /// The agreed start of every sample of this round.
    agreed_ns: Vec<f64>,
    slack: f64,
    residual: Option<Residual>,
}

impl<'k, M: Mesh> Windows<'k, M> {
    /// For a row: offsets are found again, and how wrong they are. Collective.
    pub(crate) fn open(team: &'k dyn Team, sync: Shared<'k, M>) -> Result<Windows<'k, M>> {
        sync.borrow_mut().refresh()?;
        let residual = sync.borrow_mut().residual()?;
        Ok(Windows { team, sync, agreed_ns: Vec::new(), slack: SLACK.0, residual })
    }

    /// A round: `each` takes the samples whose stamps it is given, after every rank has been told when the first of them starts.
    pub(crate) fn round(
        &mut self,
        pacer: &mut Pacer<M>,
        stamps: &mut [u64],
        mut each: impl FnMut(&mut Pacer<M>, &mut [u64]) -> Result<()>,
    ) -> Result<()> {
        self.agreed_ns.clear();
        for stamps in stamps.chunks_mut(2 * TOGETHER) {
            pacer.mesh.barrier()?;
            let first = self.sync.borrow().now_ns() + LEAD_NS;
            let mut told = [first.to_le_bytes(), pacer.starts.length_ns.to_le_bytes()].concat();
            self.team.broadcast(&mut told)?;
            let [first, length] =
                [0, 1].map(|at| told.as_chunks().0.get(at).map_or(0.0, |b| f64::from_le_bytes(*b)));
            let model = self.sync.borrow().model();
            pacer.starts = Starts { model, next_ns: first, length_ns: length };
            self.agreed_ns.extend((0..stamps.len() / 2).map(|at| first + length * at as f64));
            each(pacer, stamps)?;
        }
        self.review(pacer, stamps)
    }

    /// Rank 0 makes windows as long as what happened in the last ones needs. Collective.
    fn review(&mut self, pacer: &mut Pacer<M>, stamps: &[u64]) -> Result<()> {
        let spans = self.spans(stamps);
        let late = Self::late(&spans).len();
        let mut times: Vec<f64> = spans.iter().map(|(start, end)| end - start).collect();
        times.sort_unstable_by(f64::total_cmp);
        let mine = [times.get(times.len() * 9 / 10).copied().unwrap_or(0.0), late as f64];
        let Some(all) = self.team.gather(&mine.map(f64::to_le_bytes).concat())? else { return Ok(()) };
        let of = |part: usize| {
            let words =
                all.iter().filter_map(move |b| b.as_chunks().0.get(part).copied().map(f64::from_le_bytes));
            words.fold(0.0, f64::max)
        };
        if of(1) > LATE_PART * spans.len() as f64 {
            self.slack = (2.0 * self.slack).min(MOST_SLACK);
        }
        // Where even much slack is not enough, ranks are held up by something else.
        pacer.starts.length_ns = (SLACK.0 * of(0)).max((self.slack * of(0)).min(FIRST_NS)) + SLACK.1;
        Ok(())
    }

    /// From the agreed start of every sample to this rank's start and end, in nanoseconds on the clock of all.
    pub(crate) fn spans(&self, stamps: &[u64]) -> Vec<(f64, f64)> {
        let model = self.sync.borrow().model();
        let stamps = stamps.as_chunks().0.iter().zip(&self.agreed_ns);
        stamps.map(|([start, end], agreed)| (model.ns(*start) - agreed, model.ns(*end) - agreed)).collect()
    }

    /// Samples of a round that this rank started late.
    pub(crate) fn late(spans: &[(f64, f64)]) -> Vec<u64> {
        (0..).zip(spans).filter(|(_, (start, _))| *start > LATE_NS).map(|(at, _)| at).collect()
    }

    /// What the row tells of its windows. Collective; rank 0's counts.
    pub(crate) fn figures(&mut self) -> Result<Figures> {
        let after = self.sync.borrow_mut().residual()?;
        let mut figures = Figures::new();
        let mut tell = |name: &str, ns: f64| figures.insert(name.into(), Figure::Value(ns / 1e3));
        if let (Some(before), Some(after)) = (self.residual, after) {
            tell("sync_residual_us", before.median_ns);
            tell("sync_residual_after_us", after.median_ns);
            if let (Some(before), Some(after)) = (before.truth_ns, after.truth_ns) {
                tell("sync_error_us", before.max(after));
            }
        }
        Ok(figures)
    }
}
