//! Coverage of confidence intervals: how often the interval of a row of simulated noise contains the true median.
//!
//! Rows are measured by the same code as real ones.

use super::{
    noise::{Noise, NoiseStream},
    thread_team::{ThreadTeam, on_ranks},
};
use crate::{
    benchmark::{
        Axis, Benchmark, Case, Choice, Context, Figure, Figures, Kernel, Layout, Method, Metric, Named, Work,
        payload::{Check, Fill},
    },
    error::Result,
    measure::{
        plan::Plan,
        runner::{self, Part},
        sink::Sink,
    },
    result::{Measurement, Run, Tally},
    trust,
    unit::Bytes,
};

/// A named model of noise.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Family of noise.
    pub family: &'static str,
    /// Unique name.
    pub name: &'static str,
    /// Distribution of times.
    pub noise: Noise,
}

const fn model(family: &'static str, name: &'static str, noise: Noise) -> Model {
    Model { family, name, noise }
}

/// Family of changes that no row can detect: slower than a row, or smaller than the scatter of its samples.
pub const SLOWER: &str = "slower than a row";

/// All simulated models.
pub const MODELS: [Model; 27] = [
    model("independent", "normal 2 %", Noise::Independent { sigma: 0.02 }),
    model("independent", "normal 10 %", Noise::Independent { sigma: 0.1 }),
    model("independent", "normal 30 %", Noise::Independent { sigma: 0.3 }),
    model("independent", "tail 10 %", Noise::Tailed { mean: 0.1 }),
    model("independent", "tail 50 %", Noise::Tailed { mean: 0.5 }),
    model("autocorrelated", "r = -0.3", Noise::Correlated { phi: -0.3, sigma: 0.1 }),
    model("autocorrelated", "r = 0.05", Noise::Correlated { phi: 0.05, sigma: 0.1 }),
    model("autocorrelated", "r = 0.1", Noise::Correlated { phi: 0.1, sigma: 0.1 }),
    model("autocorrelated", "r = 0.3", Noise::Correlated { phi: 0.3, sigma: 0.1 }),
    model("autocorrelated", "r = 0.6", Noise::Correlated { phi: 0.6, sigma: 0.1 }),
    model("autocorrelated", "r = 0.6, skewed", Noise::Correlated { phi: 0.6, sigma: 0.3 }),
    model("autocorrelated", "r = 0.9", Noise::Correlated { phi: 0.9, sigma: 0.1 }),
    model("autocorrelated", "r = 0.99", Noise::Correlated { phi: 0.99, sigma: 0.1 }),
    model("autocorrelated", "r = 0.999", Noise::Correlated { phi: 0.999, sigma: 0.1 }),
    model("bimodal", "30 % slow", Noise::Bimodal { share: 0.3, apart: 0.5, run: 0.0 }),
    model("bimodal", "45 % slow", Noise::Bimodal { share: 0.45, apart: 0.5, run: 0.0 }),
    model("bimodal", "5 % slow", Noise::Bimodal { share: 0.05, apart: 0.5, run: 0.0 }),
    model("bimodal", "30 % slow, runs of 3", Noise::Bimodal { share: 0.3, apart: 0.5, run: 3.0 }),
    model("drifting", "0.1 % in 1000", Noise::Ramp { growth: 0.001, sigma: 0.05 }),
    model("drifting", "1 % in 1000", Noise::Ramp { growth: 0.01, sigma: 0.05 }),
    model("drifting", "10 % in 1000", Noise::Ramp { growth: 0.1, sigma: 0.05 }),
    model("drifting", "swings by 5 % in 400", Noise::Swing { amplitude: 0.05, period: 400.0, sigma: 0.05 }),
    model("drifting", "swings by 1 % in 400", Noise::Swing { amplitude: 0.01, period: 400.0, sigma: 0.05 }),
    model("drifting", "wanders by 5 % in 100", Noise::Wander { amplitude: 0.05, memory: 100.0, sigma: 0.05 }),
    model(SLOWER, "30 % slow, runs of 200", Noise::Bimodal { share: 0.3, apart: 0.5, run: 200.0 }),
    model(SLOWER, "wanders by 1 % in 100", Noise::Wander { amplitude: 0.01, memory: 100.0, sigma: 0.05 }),
    model(
        SLOWER,
        "wanders by 5 % in 10000",
        Noise::Wander { amplitude: 0.05, memory: 10_000.0, sigma: 0.05 },
    ),
];

const NAMES: [&str; MODELS.len()] = {
    let mut names = [""; MODELS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = MODELS[at].name;
        at += 1;
    }
    names
};

static NOISE: Axis = Axis {
    name: "noise",
    about: "model of noise",
    values: &NAMES,
    help: &[],
    default: NAMES[0],
    named: Named::Always,
};

/// Benchmark of simulated noise. The message size is the seed of the row.
static SIMULATED: Benchmark = Benchmark {
    axes: &[&NOISE],
    layout: Layout::Alone,
    ..Benchmark::of::<Noisy>("simulated.latency", "iterations whose times a model of noise gives")
};

/// Number of rows of a model by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// All rows.
    pub rows: u64,
    /// Rows with an interval.
    pub intervals: u64,
    /// Rows whose interval contains the true median.
    pub covered: u64,
    /// Rows with a notice that the interval is not reliable.
    pub marked: u64,
    /// Rows without a notice about the interval.
    pub silent: u64,
    /// Rows without a notice about the interval, whose interval contains the true median.
    pub silent_covered: u64,
    /// Number of samples of all rows.
    pub samples: u64,
}

/// Measures rows of a model and compares their intervals with the true median. Equal seeds give equal rows.
pub fn cover(model: &'static Model, rows: u64, seed: u64, plan: &Plan) -> Result<Coverage> {
    let mut plan = plan.clone();
    plan.axes.insert(NOISE.name.into(), vec![model.name]);
    plan.sizes = Some((seed * rows..(seed + 1) * rows).map(Bytes).collect());
    let mut all = on_ranks(1, |team| {
        let mut judge = CoverageSink { model, coverage: Coverage::default() };
        let part = Part { choices: vec![Choice { bench: &SIMULATED, preset: &[] }], plan: plan.clone() };
        runner::run_all(team, &[part], &team.clock, &mut judge, vec!["coverage".into()])?;
        Ok(judge.coverage)
    });
    let first = all.swap_remove(0);
    all.into_iter().try_for_each(|other| other.map(|_| ())).and(first)
}

/// Sink that compares each row with the true median.
struct CoverageSink {
    model: &'static Model,
    coverage: Coverage,
}

impl Sink for CoverageSink {
    fn run(&mut self, _: &Run) -> Result<()> {
        Ok(())
    }

    fn case(&mut self, row: &Measurement) -> Result<()> {
        let (Some(summary), Some(samples)) = (&row.summary, row.samples.first()) else { return Ok(()) };
        let Some(Figure::Value(last)) = row.figures.get("iterations") else { return Ok(()) };
        let end = *last as u64;
        let start = end - samples.elapsed_ns.len() as u64 * samples.batch;
        let truth = self.model.noise.median_ns(row.bytes.unwrap_or(0), start..end);
        let covered = u64::from(summary.ci95.is_some_and(|[low, high]| low <= truth && truth <= high));
        let marked =
            u64::from(row.trust.iter().any(|notice| trust::SPOILS_THE_INTERVAL.contains(&&*notice.code)));
        let sum = &mut self.coverage;
        sum.rows += 1;
        sum.intervals += u64::from(summary.ci95.is_some());
        sum.covered += covered;
        sum.marked += marked;
        sum.silent += 1 - marked;
        sum.silent_covered += (1 - marked) * covered;
        sum.samples += summary.n as u64;
        Ok(())
    }

    fn end(&mut self, _: &Tally) -> Result<()> {
        Ok(())
    }
}

/// Kernel whose iterations let a random time pass.
struct Noisy {
    team: ThreadTeam,
    stream: NoiseStream,
    iterations: u64,
}

impl Kernel for Noisy {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let chosen = case.axis(&NOISE);
        let model = MODELS.iter().find(|model| model.name == chosen).unwrap_or(&MODELS[0]);
        let team = cx.fabric::<ThreadTeam>()?.clone();
        Ok(Noisy { team, stream: model.noise.stream(case.bytes.0), iterations: 0 })
    }

    fn active(&mut self) -> Result<()> {
        self.iterations += 1;
        self.team.time.advance(self.stream.next_ns().round() as u64);
        Ok(())
    }

    fn check(&mut self, _: Fill) -> Result<Check> {
        Ok(Check::Passed)
    }

    /// Returns the number of iterations so far.
    fn figures(&mut self) -> Result<Figures> {
        Ok([("iterations".into(), Figure::Value(self.iterations as f64))].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures rows with a fixed seed, so that the result depends on the code only.
    fn of(name: &str, rows: u64) -> Coverage {
        let model = MODELS.iter().find(|model| model.name == name).unwrap();
        let coverage = cover(model, rows, 3, &Plan::default()).unwrap();
        assert_eq!(coverage.rows, rows, "{name}");
        coverage
    }

    #[test]
    fn intervals_without_a_notice_have_their_nominal_coverage() {
        // 93 to 98 %, plus or minus two standard errors of 400 rows. An interval of one standard error would cover 68 %.
        for name in
            ["normal 2 %", "normal 10 %", "tail 10 %", "r = 0.3", "r = 0.6", "5 % slow", "0.1 % in 1000"]
        {
            let found = of(name, 400);
            let share = found.silent_covered as f64 / found.silent as f64;
            assert!(found.silent > 300 && (0.91..=0.99).contains(&share), "{name}: {share} of {found:?}");
        }
    }

    #[test]
    fn unreliable_intervals_have_a_notice() {
        for name in ["r = 0.99", "30 % slow", "30 % slow, runs of 3", "wanders by 5 % in 100"] {
            let found = of(name, 40);
            assert!(found.marked + found.silent_covered >= 37, "{name}: {found:?}");
        }
    }

    #[test]
    fn rows_of_little_noise_have_no_notice() {
        let found = of("normal 2 %", 400);
        assert!(found.marked <= 4, "{found:?}");
    }
}
