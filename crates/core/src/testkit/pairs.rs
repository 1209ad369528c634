//! Pairs of ranks with simulated noise: their headline beside their total work over wall time.
//!
//! Rows are measured by the same code as real ones.

use super::{
    noise::{Noise, NoiseStream},
    thread_team::{ThreadTeam, on_uneven_ranks},
};
use crate::{
    benchmark::{
        Benchmark, Case, Choice, Context, Figure, Figures, Kernel, Layout, Method, Metric, Named, Pairs,
        Parameter, Role, Work,
    },
    error::{Error, Result},
    measure::{
        plan::{Effort, Plan},
        runner::{self, Part},
        session::Memory,
    },
    result::Samples,
    unit::Bytes,
};

/// Undisturbed time of a simulated iteration in nanoseconds: a window of small messages.
const ITERATION_NS: f64 = 10_000.0;
/// Iterations of each pair.
const ITERATIONS: u64 = 40_000;
/// Iterations of the warm-up.
const WARM_UP: u64 = 40;
/// Time in nanoseconds by which a rank leaves a barrier later than the rank before it.
const LEAVES_NS: u64 = 200;

/// Noise of the iterations of each pair, independent between pairs.
pub const MODELS: [(&str, Noise); 5] = [
    ("normal 2 %", Noise::Independent { sigma: 0.02 }),
    ("normal 10 %", Noise::Independent { sigma: 0.1 }),
    ("normal 30 %", Noise::Independent { sigma: 0.3 }),
    ("tail 30 %", Noise::Tailed { mean: 0.3, phi: 0.0 }),
    ("30 %, r = 0.6", Noise::Correlated { phi: 0.6, sigma: 0.3 }),
];

static NOISE: Parameter = Parameter::listed(
    "noise",
    "model of noise",
    (&[MODELS[0].0, MODELS[1].0, MODELS[2].0, MODELS[3].0, MODELS[4].0], &[]),
    (MODELS[0].0, Named::Always),
);

static SIMULATED: Benchmark =
    Benchmark::of::<NoisyPair>("simulated.pairs", "pairs whose iterations a model of noise gives")
        .layout(Layout::Pairs(Pairs::Most))
        .with(&[&NOISE]);

/// Rates of a row, each relative to the total work over the wall time that passed on a clock outside the engine.
#[derive(Debug, Clone, Copy)]
pub struct PairsRow {
    /// Iterations per sample.
    pub batch: u64,
    /// Number of samples.
    pub samples: usize,
    /// The headline.
    pub headline: f64,
    /// The headline with the slowest pair's own time in place of the time from the first start to the last end.
    pub slowest_own: f64,
    /// Mean of the pairs' own times, as osu_mbw_mr computes it.
    pub osu: f64,
}

/// Measures pairs of a model. Equal seeds give equal rows.
pub fn measure_pairs(pairs: u32, model: &'static str, seed: u64) -> Result<PairsRow> {
    let mut plan = Plan {
        sizes: Some(vec![Bytes(seed)]),
        effort: Effort::Fixed { iterations: ITERATIONS, warmup: WARM_UP },
        ..Plan::default()
    };
    plan.chosen.set(NOISE.name, [model]);
    let leaves = |from, to| if from == to { LEAVES_NS * u64::from(from) } else { 0 };
    let mut all = on_uneven_ranks(2 * pairs, leaves, |team| {
        let mut sink = Memory::default();
        let part = Part { choices: vec![Choice { bench: &SIMULATED, preset: &[] }], plan: plan.clone() };
        runner::run_all(team, &[part], &team.clock, &mut sink, vec!["pairs".into()]).map(|_| sink)
    });
    let mut sink = all.swap_remove(0)?;
    let missing = || Error::usage(format!("{model} was not measured"));
    let row = sink.rows.pop().ok_or_else(missing)?;
    let (Some(summary), Some(Figure::Value(wall_ns))) = (&row.summary, row.figures.get("wall_ns")) else {
        return Err(missing());
    };
    let batch = row.samples.first().map_or(1, |samples| samples.batch);
    let slowest = |at: usize| row.samples.iter().map(|s: &Samples| s.elapsed_ns[at]).max().unwrap_or(0);
    let own = (0..summary.n).map(slowest).sum::<u64>() as f64 / (summary.n as f64 * batch as f64);
    let mean = row.across_ranks().ok_or_else(missing)?.mean;
    Ok(PairsRow {
        batch,
        samples: summary.n,
        headline: wall_ns / summary.median,
        slowest_own: wall_ns / own,
        osu: wall_ns / mean,
    })
}

/// Kernel of a pair whose iterations let a random time pass.
struct NoisyPair {
    team: ThreadTeam,
    stream: NoiseStream,
    began_ns: u64,
    iterations: u64,
}

impl Kernel for NoisyPair {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let chosen = case.text(&NOISE);
        let (_, noise) = MODELS.iter().find(|(name, _)| Some(*name) == chosen).unwrap_or(&MODELS[0]);
        let team = cx.fabric::<ThreadTeam>()?.clone();
        let seed = case.bytes.0 << 16 | u64::from(cx.rank().0) << 1 | u64::from(cx.role == Role::Active);
        Ok(NoisyPair { team, stream: noise.stream(seed), began_ns: 0, iterations: 0 })
    }

    fn begin(&mut self) -> Result<()> {
        self.team.virtual_barrier()?;
        (self.began_ns, self.iterations) = (self.team.time.now(), 0);
        Ok(())
    }

    fn active(&mut self) -> Result<()> {
        self.iterations += 1;
        let ns = self.stream.next_time() * ITERATION_NS;
        self.team.time.advance(ns.round() as u64);
        Ok(())
    }

    /// Returns the wall time of all pairs for one iteration of each.
    fn figures(&mut self) -> Result<Figures> {
        self.team.virtual_barrier()?;
        let wall_ns = (self.team.time.now() - self.began_ns) as f64;
        Ok([("wall_ns".into(), Figure::Value(wall_ns / self.iterations.max(1) as f64))].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_of_noisy_pairs_is_their_total_work_over_wall_time() {
        for (pairs, (model, _)) in [2, 5, 16].into_iter().flat_map(|pairs| MODELS.map(|model| (pairs, model)))
        {
            let row = measure_pairs(pairs, model, 1).unwrap();
            assert!((row.headline - 1.0).abs() < 0.01, "{pairs} pairs, {model}: {row:?}");
            assert!((row.slowest_own / row.headline - 1.0).abs() < 0.01, "{pairs} pairs, {model}: {row:?}");
            assert!(row.osu >= row.headline, "{pairs} pairs, {model}: {row:?}");
            assert!(row.batch as f64 * ITERATION_NS > 0.6e6, "{row:?}");
        }
    }
}
