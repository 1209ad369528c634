//! Alternates blocks of both sides and compares them.

use std::cell::RefCell;

use fastrand::Rng;
use ombx_core::{
    benchmark::{Case, Context, Role},
    clock::Clock,
    measure::{open_kernel::OpenKernel, session::MeasureKernel},
    pacing::mesh::Mesh as _,
    team::Team,
};
use ombx_mpi::{Mesh, MpiTeam};
use ombx_record::{
    error::{Error, Result},
    stats::{median, order_bounds},
    unit::Rank,
};

use crate::{
    reference::Loop,
    row::Row,
    side::{Side, Sides},
};

/// Time of a block. A reading of the clock is negligible beside it.
const BLOCK_NS: f64 = 100e3;
/// Iterations before a block, for caches and branch predictors, unless an iteration is long.
const LEAD: u64 = 4;
const LONG_NS: f64 = 20e3;
/// Runs of each side from whose fastest the time of an iteration is known.
const TRIALS: usize = 4;
/// Most messages before a block. Their number is random, so that no side owns a state of the library.
const SHIFTS: u32 = 8;
/// Pairs between two decisions, and most pairs of a launch.
const CHUNK: usize = 8;
const MAX_PAIRS: usize = 4000;
/// Half width of the interval at which a row ends early.
const PRECISION: f64 = 0.001;

/// What runs of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Pairs of blocks until the ratio is known or the time, in nanoseconds, is over.
    Compare { budget_ns: u64 },
    /// Two blocks of each side with these numbers of iterations, for callgrind.
    Count([u64; 2]),
}

/// Result of a row on rank 0.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Compared {
        /// Median over pairs of the time of ombx in that of C.
        ratio: f64,
        /// Nanoseconds of an iteration.
        ombx_ns: f64,
        c_ns: f64,
    },
    Counted,
    /// Reason why the row does not run here.
    Skipped(String),
}

/// Compares each open kernel with its C loop.
pub(crate) struct Comparison<'a> {
    pub(crate) team: &'a MpiTeam,
    pub(crate) clock: &'a Clock,
    pub(crate) row: &'a Row,
    pub(crate) work: Work,
    /// The same on every rank.
    pub(crate) random: RefCell<Rng>,
    pub(crate) found: RefCell<Option<Found>>,
}

impl MeasureKernel for Comparison<'_> {
    fn measure(&self, kernel: &mut dyn OpenKernel, case: &Case, role: Role) -> Result<()> {
        if self.found.borrow().is_some() {
            return Ok(());
        }
        let reference =
            Loop::find(&self.row.reference, self.team.handles(), case.depth()).ok_or_else(|| {
                Error::usage(format!("{} has no C loop named {}", self.row.name, self.row.reference))
            })?;
        let sides = Sides::new(kernel, reference, self.clock, (role, case, self.row.shape));
        let mesh = Mesh::open(&Context::new(self.team))?;
        let mut pairs = Pairs { team: self.team, mesh, sides, iterations: 1, lead: 0 };
        let random = &mut self.random.borrow_mut();
        let found = match self.work {
            Work::Compare { budget_ns } => pairs.compare(budget_ns, random)?,
            Work::Count(iterations) => pairs.count(iterations)?,
        };
        *self.found.borrow_mut() = Some(found);
        Ok(())
    }
}

/// Blocks of one case.
struct Pairs<'a> {
    team: &'a dyn Team,
    mesh: Mesh,
    sides: Sides<'a>,
    /// Iterations of a block, and of its untimed lead.
    iterations: u64,
    lead: u64,
}

impl Pairs<'_> {
    /// Runs the blocks that callgrind counts.
    fn count(&mut self, iterations: [u64; 2]) -> Result<Found> {
        for side in [Side::Ombx, Side::C] {
            for iterations in iterations {
                self.team.barrier()?;
                self.sides.run(side, iterations)?;
            }
        }
        Ok(match self.sides.role {
            Role::Active => Found::Counted,
            Role::Passive => Found::Skipped("rank 0 is not timed".into()),
        })
    }

    fn compare(&mut self, budget_ns: u64, random: &mut Rng) -> Result<Found> {
        self.calibrate()?;
        let start = self.sides.clock.mark();
        let mut figures: [Vec<f64>; 2] = Default::default();
        let mut more = 1;
        while more > 0 {
            let mut ticks = Vec::new();
            for _ in 0..CHUNK {
                let sides = if random.bool() { [Side::Ombx, Side::C] } else { [Side::C, Side::Ombx] };
                let mut pair = [Vec::new(), Vec::new()];
                for side in sides {
                    pair[side as usize] = self.block(side, random)?;
                }
                ticks.extend(pair);
            }
            for (at, figure) in self.slowest(&ticks)?.into_iter().enumerate() {
                figures[at % 2].push(figure);
            }
            let done = {
                let pairs = figures[0].len();
                let close = ratio(&figures).1.is_some_and(|(low, high)| (high - low) / 2.0 < PRECISION);
                pairs >= MAX_PAIRS || start.elapsed_ns() > budget_ns || close && pairs >= 4 * CHUNK
            };
            more = self.team.broadcast_value(u64::from(!done))?;
        }
        let (ratio, _) = ratio(&figures);
        let per_iteration =
            |figures: &[f64]| median(figures).unwrap_or(f64::NAN) * self.sides.clock.tick_ns();
        let [ombx_ns, c_ns] = [per_iteration(&figures[0]), per_iteration(&figures[1])];
        Ok(Found::Compared { ratio, ombx_ns, c_ns })
    }

    /// Chooses how many iterations a block has.
    fn calibrate(&mut self) -> Result<()> {
        let clock = self.sides.clock;
        let (mut iteration_ns, mut next) = (f64::INFINITY, 1);
        while next > 0 {
            iteration_ns = f64::INFINITY;
            for side in [Side::Ombx, Side::C].repeat(TRIALS) {
                self.team.barrier()?;
                let start = clock.mark();
                self.sides.run(side, next)?;
                self.team.barrier()?;
                iteration_ns = iteration_ns.min(start.elapsed_ns() as f64 / next as f64);
            }
            let enough = iteration_ns * next as f64 > BLOCK_NS / 2.0;
            next = self.team.broadcast_value(if enough { 0 } else { 2 * next })?;
        }
        let iterations = (BLOCK_NS / iteration_ns).ceil().max(1.0) as u64;
        self.iterations = self.team.broadcast_value(iterations)?;
        self.lead = self.team.broadcast_value(if iteration_ns > LONG_NS { 0 } else { LEAD })?;
        Ok(())
    }

    /// Runs a block after a random number of messages in each direction.
    fn block(&mut self, side: Side, random: &mut Rng) -> Result<Vec<u64>> {
        let me = self.team.rank();
        for (from, to) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            for _ in 0..random.u32(0..SHIFTS) {
                if me == from {
                    self.mesh.send(to, &[0])?;
                } else if me == to {
                    self.mesh.receive(from, &mut [0])?;
                }
            }
        }
        if self.lead > 0 {
            self.sides.run(side, self.lead)?;
        }
        self.team.barrier()?;
        self.sides.run(side, self.iterations)
    }

    /// Returns the ticks of an iteration of each block on rank 0: the mean of the middle half of its samples, each of the slowest rank.
    /// A median would be a multiple of the clock's step.
    fn slowest(&self, blocks: &[Vec<u64>]) -> Result<Vec<f64>> {
        let mine: Vec<u8> = blocks.iter().flatten().flat_map(|ticks| ticks.to_le_bytes()).collect();
        let Some(all) = self.team.gather(&mine)? else { return Ok(Vec::new()) };
        let timed: Vec<&[[u8; 8]]> =
            all.iter().map(|bytes| bytes.as_chunks().0).filter(|ticks| !ticks.is_empty()).collect();
        let samples = timed.first().map_or(0, |ticks| ticks.len()) / blocks.len().max(1);
        let (batch, _) = self.sides.shape.divide(self.iterations);
        let slowest = |at: usize| {
            timed.iter().filter_map(|ticks| ticks.get(at)).map(|word| u64::from_le_bytes(*word)).max()
        };
        let block = |block: usize| {
            let ticks = (block * samples..(block + 1) * samples).filter_map(slowest);
            middle_mean(ticks.map(|ticks| ticks as f64 / batch as f64).collect())
        };
        Ok((0..blocks.len()).map(block).collect())
    }
}

/// Returns the mean of the middle half of samples.
fn middle_mean(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let middle = &samples[samples.len() / 4..samples.len() - samples.len() / 4];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Returns the median over pairs of the ratio of ombx to C, and its interval.
fn ratio(figures: &[Vec<f64>; 2]) -> (f64, Option<(f64, f64)>) {
    let [ombx, c] = figures;
    let mut ratios: Vec<f64> = ombx.iter().zip(c).map(|(ombx, c)| ombx / c).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let interval = order_bounds(ratios.len(), 0.5).map(|(low, high)| (ratios[low - 1], ratios[high - 1]));
    (median(&ratios).unwrap_or(f64::NAN), interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_steps_of_the_clock_nor_interruptions_decide_the_figure_of_a_block() {
        assert_eq!(middle_mean(vec![20.0, 30.0, 20.0, 20.0, 30.0, 20.0, 9000.0, 20.0]), 22.5);
        assert_eq!(middle_mean(vec![7.0]), 7.0);
        assert!(middle_mean(Vec::new()).is_nan());
    }

    #[test]
    fn the_ratio_is_the_median_over_pairs() {
        let c = vec![100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0];
        let ombx = c.iter().enumerate().map(|(at, c)| c * (1.0 + at as f64 / 100.0)).collect();
        let (ratio, interval) = ratio(&[ombx, c]);
        assert!((ratio - 1.03).abs() < 1e-9);
        let (low, high) = interval.unwrap();
        assert!((low - 1.0).abs() < 1e-9 && (high - 1.06).abs() < 1e-9);
    }
}
