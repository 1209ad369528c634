//! Rings of messages: rows whose time depends on how many messages were sent before, and their mark.

use ombx_core::{
    measure::alignment::{Alignment, LENGTHS},
    result::{Measurement, Metric, Rounds},
    trust,
    unit::Rank,
};
use ombx_estimate::launches::interval;
use ombx_record::stats::Summary;

use super::Lines;
use crate::random::Random;

const LAUNCHES: u64 = 9;
/// Samples of a launch, of which a row has more where iterations are short.
const SAMPLES: u64 = 4000;
/// Messages of an iteration: the default window.
const WINDOW: u64 = 64;
/// Messages by which ranks agree between two parts of a row.
const BETWEEN: u64 = 3;
/// How much longer the slowest position takes than the fastest.
const APART: f64 = 0.5;

pub(super) fn simulate(lines: &mut Lines, times: u64, seed: u64) {
    let rings = [2, 32, 64, 128, 256].map(|ring| (ring, Scatter::Equal));
    for (ring, scatter) in rings.into_iter().chain([(256, Scatter::InProportion)]) {
        let (mut held, mut marked, mut runs, mut sum) = (0, 0, 0, 0.0);
        for run in 0..times {
            let mut random = Random(seed ^ (run << 20) ^ ring);
            let row = Ring { length: ring, before: (random.uniform() * 1e6) as u64, scatter };
            let launches: Vec<Vec<Vec<f64>>> = (0..LAUNCHES).map(|_| row.launch(&mut random)).collect();
            let medians: Vec<f64> = launches.iter().filter_map(|rounds| median(rounds)).collect();
            let Some(found) = interval(&medians) else { continue };
            let mean = 1.0 + APART * (ring - 1) as f64 / ring as f64 / 2.0;
            runs += 1;
            held += u64::from((found.low..=found.high).contains(&mean));
            sum += medians.iter().sum::<f64>() / medians.len() as f64 / mean - 1.0;
            marked += launches.iter().filter(|rounds| is_marked(rounds)).count() as u64;
        }
        let model = format!("a sawtooth of {:.0} % over {ring} positions{}", APART * 100.0, scatter.named());
        let off = sum / runs.max(1) as f64 * 100.0;
        lines.figure("mean of the rounds' levels is off by", &model, off, [-0.5, 0.5]);
        // No robust estimate of a mixture is free of bias where its parts scatter differently. Here it is 0.02 %, and intervals are as short.
        let least = if scatter == Scatter::Equal { 94.0 } else { 80.0 };
        lines.share("mean over positions, 9 launches", &model, [held, runs], [least, 100.0]);
        // In a longer ring each round meets several positions, and rounds differ less.
        if ring <= WINDOW {
            lines.share("mark `several levels`", &model, [marked, runs * LAUNCHES], [99.0, 100.0]);
        }
    }
    for (name, scatter, phi) in
        [("scatter of 3 %", 0.03, 0.0), ("scatter of 20 %", 0.2, 0.0), ("AR(0.9) of 3 %", 0.03, 0.9)]
    {
        let mut marked = 0;
        for run in 0..times {
            let mut random = Random(seed ^ (run << 20));
            let mut state = random.normal();
            let mut next = || {
                state = phi * state + (1.0 - phi * phi).sqrt() * random.normal();
                (scatter * state).exp()
            };
            let rounds: Vec<Vec<f64>> =
                (0..SAMPLES / LENGTHS[0]).map(|_| (0..LENGTHS[0]).map(|_| next()).collect()).collect();
            marked += u64::from(is_marked(&rounds));
        }
        lines.share("mark `several levels`", &format!("one level, {name}"), [marked, times], [0.0, 1.0]);
    }
}

/// How samples scatter: by [`SIGMA`] of the fastest position, or of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scatter {
    Equal,
    InProportion,
}

impl Scatter {
    fn named(self) -> &'static str {
        match self {
            Scatter::Equal => "",
            Scatter::InProportion => ", the slow ones with more scatter",
        }
    }
}

/// Standard deviation of a sample, in parts of the time of a position.
const SIGMA: f64 = 0.03;

/// A library whose time depends on a position in a ring.
struct Ring {
    length: u64,
    /// Messages before the row, which are the same in each launch.
    before: u64,
    scatter: Scatter,
}

impl Ring {
    /// Returns the rounds of a launch, as the engine divides them.
    fn launch(&self, random: &mut Random) -> Vec<Vec<f64>> {
        let rounds = Rounds { samples: LENGTHS[0] as u32, seed: (random.uniform() * 2f64.powi(53)) as u64 };
        let mut alignment = Alignment::new(Some(rounds), Rank(0), [Rank(1); 2]);
        let (mut at, mut all, mut taken, mut next) = (self.before, Vec::new(), 0, alignment.spread());
        while taken < SAMPLES {
            for part in alignment.divide(next) {
                at += part.shift.map_or(0, |messages| messages.sent) + part.dropped * WINDOW;
                let mut sample = || {
                    let level = 1.0 + APART * (at % self.length) as f64 / self.length as f64;
                    at += WINDOW;
                    let wide = if self.scatter == Scatter::Equal { 1.0 } else { level };
                    level + SIGMA * wide * random.normal()
                };
                all.push((0..part.samples).map(|_| sample()).collect());
            }
            at += BETWEEN;
            taken += next;
            next = (taken * 6 / 10).next_multiple_of(alignment.spread());
        }
        all
    }
}

fn median(rounds: &[Vec<f64>]) -> Option<f64> {
    Summary::of_rounds(rounds).map(|summary| summary.median)
}

fn is_marked(rounds: &[Vec<f64>]) -> bool {
    let row = Measurement::new("simulated.bw", "simulated.bw", Metric::Latency, 2);
    trust::several_levels(rounds, &row).is_some()
}
