//! Windows of time: ranks start each sample at an agreed time of their synchronised clocks.

use std::{cell::RefCell, rc::Rc};

use ombx_record::{
    error::Result,
    order::sort,
    result::{Figure, Figures},
};

use crate::{
    pacing::{
        clock_sync::{ClockSync, Residual},
        mesh::Mesh,
        start::{FIRST_WINDOW_NS, Pacer, StartTimes},
    },
    team::Team,
};

/// Number of samples per agreed start. A rank that was delayed catches up at the next agreement.
const SAMPLES_PER_START: usize = 20;
/// Time between agreement and start, so that every rank knows the start in time.
const LEAD_NS: f64 = 100_000.0;
/// A rank that starts later than this after the agreed time is late.
const LATE_NS: f64 = 500.0;
/// Initial and minimum ratio of window length to operation time.
const MIN_SLACK: f64 = 2.0;
/// Maximum ratio of window length to operation time when ranks are late.
const MAX_SLACK: f64 = 64.0;
/// Time added to each window for the end of waiting.
const MARGIN_NS: f64 = 2_000.0;
/// Slack doubles when more than this part of a round's samples started late.
const MAX_LATE_PART: f64 = 0.02;

/// Figure by which the time between the first start and the last end of an operation may be wrong.
pub(crate) const RESIDUAL_RANGE: &str = "sync_residual_range_us";

/// Clock synchronisation, shared by all rows of a session.
pub(crate) type SharedClockSync<'k, M> = Rc<RefCell<ClockSync<'k, M>>>;

/// Takes the samples of one agreed start.
pub(crate) type EachStart<'e, M> = dyn FnMut(&mut Pacer<M>, &mut [u64]) -> Result<()> + 'e;

/// Windows of one row.
pub(crate) struct WindowPacing<'k, M> {
    team: &'k dyn Team,
    sync: SharedClockSync<'k, M>,
    /// Agreed start of every sample of this round, in rank 0's time.
    agreed_ns: Vec<f64>,
    slack: f64,
    residual: Option<Residual>,
}

impl<'k, M: Mesh> WindowPacing<'k, M> {
    /// Refreshes the clock offsets for a row and measures their error. Collective.
    pub(crate) fn open(team: &'k dyn Team, sync: SharedClockSync<'k, M>) -> Result<WindowPacing<'k, M>> {
        sync.borrow_mut().refresh()?;
        let residual = sync.borrow_mut().residual()?;
        Ok(WindowPacing { team, sync, agreed_ns: Vec::new(), slack: MIN_SLACK, residual })
    }

    /// Runs one round: agrees on a start, lets `each` take the samples of the given stamps, and repeats.
    pub(crate) fn round(
        &mut self,
        pacer: &mut Pacer<M>,
        stamps: &mut [u64],
        each: &mut EachStart<'_, M>,
    ) -> Result<()> {
        self.agreed_ns.clear();
        for stamps in stamps.chunks_mut(2 * SAMPLES_PER_START) {
            pacer.mesh.barrier()?;
            let first = self.sync.borrow().now_ns() + LEAD_NS;
            let mut agreed = [first.to_le_bytes(), pacer.starts.length_ns.to_le_bytes()].concat();
            self.team.broadcast(&mut agreed)?;
            let [first, length] =
                [0, 1].map(|at| agreed.as_chunks().0.get(at).map_or(0.0, |b| f64::from_le_bytes(*b)));
            let model = self.sync.borrow().model();
            pacer.starts = StartTimes { model, next_ns: first, length_ns: length };
            self.agreed_ns.extend((0..stamps.len() / 2).map(|at| first + length * at as f64));
            each(pacer, stamps)?;
        }
        self.adapt_length(pacer, stamps)
    }

    /// Sets the length of the next windows on rank 0, from the times and late starts of all ranks. Collective.
    fn adapt_length(&mut self, pacer: &mut Pacer<M>, stamps: &[u64]) -> Result<()> {
        let spans = self.spans(stamps);
        let late = Self::late(&spans).len();
        let mut times: Vec<f64> = spans.iter().map(|(start, end)| end - start).collect();
        sort(&mut times);
        let mine = [times.get(times.len() * 9 / 10).copied().unwrap_or(0.0), late as f64];
        let all: Option<Vec<[f64; 2]>> = self.team.gather_messages(&mine)?;
        let Some(all) = all else { return Ok(()) };
        let largest = |part: usize| all.iter().map(|of_rank| of_rank[part]).fold(0.0, f64::max);
        if largest(1) > MAX_LATE_PART * spans.len() as f64 {
            self.slack = (2.0 * self.slack).min(MAX_SLACK);
        }
        // More slack than this does not help: something else delays the ranks.
        let slack_ns = (self.slack * largest(0)).min(FIRST_WINDOW_NS);
        pacer.starts.length_ns = (MIN_SLACK * largest(0)).max(slack_ns) + MARGIN_NS;
        Ok(())
    }

    /// Returns start and end of every sample on this rank, in nanoseconds of rank 0's time after the agreed start.
    pub(crate) fn spans(&self, stamps: &[u64]) -> Vec<(f64, f64)> {
        let model = self.sync.borrow().model();
        let stamps = stamps.as_chunks().0.iter().zip(&self.agreed_ns);
        stamps.map(|([start, end], agreed)| (model.ns(*start) - agreed, model.ns(*end) - agreed)).collect()
    }

    /// Returns the indices of the samples that this rank started late.
    pub(crate) fn late(spans: &[(f64, f64)]) -> Vec<u64> {
        (0..).zip(spans).filter(|(_, (start, _))| *start > LATE_NS).map(|(at, _)| at).collect()
    }

    /// Returns the clock errors before or after the row, whichever are larger, on rank 0. Collective.
    pub(crate) fn figures(&mut self) -> Result<Figures> {
        let after = self.sync.borrow_mut().residual()?;
        let residuals: Vec<Residual> = self.residual.iter().cloned().chain(after).collect();
        let largest = |of: fn(&Residual) -> Option<f64>| residuals.iter().filter_map(of).reduce(f64::max);
        let all = [
            ("sync_residual_us", largest(|r| Some(r.median_ns()))),
            ("sync_residual_max_us", largest(|r| Some(r.max_ns()))),
            (RESIDUAL_RANGE, largest(|r| Some(r.range_ns()))),
            ("sync_error_us", largest(|r| r.true_error_ns)),
        ];
        let known = all.into_iter().filter_map(|(name, ns)| Some((name.into(), Figure::Value(ns? / 1e3))));
        Ok(known.collect())
    }
}
