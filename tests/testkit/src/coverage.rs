//! Coverage of confidence intervals: how often the interval of a row of simulated noise contains the true median.
//!
//! Rows are measured by the same code as real ones.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Choice, Context, Figure, Figures, Kernel, Layout, Method, Metric, Named, Parameter,
        Work, payload::Fill,
    },
    clock::{Clock, Skew},
    error::Result,
    event::Event,
    measure::{
        plan::Plan,
        runner::{self, Part},
        session::Sink,
        timed_loop,
    },
    result::Check,
    trust,
    unit::Bytes,
};

use super::{
    noise::{Noise, NoiseStream},
    thread_team::{ThreadTeam, on_ranks},
};

/// A named model of noise and of the clock that measures it.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Family of noise.
    pub family: &'static str,
    /// Unique name.
    pub name: &'static str,
    /// Distribution of times.
    pub noise: Noise,
    /// Time of an undisturbed iteration in nanoseconds.
    pub iteration_ns: f64,
    /// Step of the clock in nanoseconds.
    pub step_ns: u64,
    /// Iterations per sample; calibrated if `None`.
    pub batch: Option<u64>,
}

/// Returns a model whose iterations are so long that each becomes a sample.
const fn model(family: &'static str, name: &'static str, noise: Noise) -> Model {
    Model { family, name, noise, iteration_ns: 100_000.0, step_ns: 1, batch: None }
}

/// Returns a model whose clock counts in steps.
const fn stepped(name: &'static str, noise: Noise, iteration_ns: f64, step_ns: u64) -> Model {
    Model { iteration_ns, step_ns, ..model("stepped clock", name, noise) }
}

const fn tailed(mean: f64, phi: f64) -> Noise {
    Noise::Tailed { mean, phi }
}

const fn gamma(mean: f64, shape: usize, fresh: usize) -> Noise {
    Noise::Gamma { mean, shape, fresh }
}

const fn correlated(phi: f64, sigma: f64) -> Noise {
    Noise::Correlated { phi, sigma }
}

const fn bimodal(share: f64, run: f64) -> Noise {
    Noise::Bimodal { share, apart: 0.5, run }
}

/// Family of changes that no row can detect: slower than a row, or smaller than the scatter of its samples.
pub const SLOWER: &str = "slower than a row";

const NORMAL: Noise = Noise::Independent { sigma: 0.02 };

/// All simulated models.
pub const MODELS: [Model; 46] = [
    model("independent", "normal 2 %", NORMAL),
    model("independent", "normal 10 %", Noise::Independent { sigma: 0.1 }),
    model("independent", "normal 30 %", Noise::Independent { sigma: 0.3 }),
    model("independent", "tail 10 %", tailed(0.1, 0.0)),
    model("independent", "tail 50 %", tailed(0.5, 0.0)),
    model("independent", "gamma 30 %, shape 4", gamma(0.3, 4, 4)),
    model("skewed", "tail 10 %, r = 0.1", tailed(0.1, 0.1)),
    model("skewed", "tail 10 %, r = 0.2", tailed(0.1, 0.2)),
    model("skewed", "tail 10 %, r = 0.3", tailed(0.1, 0.3)),
    model("skewed", "tail 20 %, r = 0.25", tailed(0.2, 0.25)),
    model("skewed", "tail 30 %, r = 0.2", tailed(0.3, 0.2)),
    model("skewed", "tail 30 %, r = 0.3", tailed(0.3, 0.3)),
    model("skewed", "tail 30 %, r = 0.6", tailed(0.3, 0.6)),
    model("skewed", "gamma 10 %, two share one of two", gamma(0.1, 2, 1)),
    model("skewed", "gamma 30 %, two share three of four", gamma(0.3, 4, 1)),
    model("autocorrelated", "r = -0.3", correlated(-0.3, 0.1)),
    model("autocorrelated", "r = 0.05", correlated(0.05, 0.1)),
    model("autocorrelated", "r = 0.1", correlated(0.1, 0.1)),
    model("autocorrelated", "r = 0.3", correlated(0.3, 0.1)),
    model("autocorrelated", "r = 0.6", correlated(0.6, 0.1)),
    model("autocorrelated", "r = 0.6, skewed", correlated(0.6, 0.3)),
    model("autocorrelated", "r = 0.9", correlated(0.9, 0.1)),
    model("autocorrelated", "r = 0.99", correlated(0.99, 0.1)),
    model("autocorrelated", "r = 0.999", correlated(0.999, 0.1)),
    model("bimodal", "30 % slow", bimodal(0.3, 0.0)),
    model("bimodal", "45 % slow", bimodal(0.45, 0.0)),
    model("bimodal", "5 % slow", bimodal(0.05, 0.0)),
    model("bimodal", "5 % slow, bursts of 5", bimodal(0.05, 5.0)),
    model("bimodal", "5 % slow, bursts of 20", bimodal(0.05, 20.0)),
    model("bimodal", "30 % slow, bursts of 3", bimodal(0.3, 3.0)),
    model("drifting", "0.1 % in 1000", Noise::Ramp { growth: 0.001, sigma: 0.05 }),
    model("drifting", "1 % in 1000", Noise::Ramp { growth: 0.01, sigma: 0.05 }),
    model("drifting", "10 % in 1000", Noise::Ramp { growth: 0.1, sigma: 0.05 }),
    model("drifting", "swings by 5 % in 400", Noise::Swing { amplitude: 0.05, period: 400.0, sigma: 0.05 }),
    model("drifting", "swings by 1 % in 400", Noise::Swing { amplitude: 0.01, period: 400.0, sigma: 0.05 }),
    model("drifting", "wanders by 5 % in 100", Noise::Wander { amplitude: 0.05, memory: 100.0, sigma: 0.05 }),
    stepped("40 ns, 100 ns iterations", NORMAL, 100.0, 40),
    stepped("40 ns, 2 us iterations", NORMAL, 2000.0, 40),
    stepped("40 ns, 2 us iterations, tail 30 %", tailed(0.3, 0.0), 2000.0, 40),
    stepped("40 ns, 20 us iterations", NORMAL, 20_000.0, 40),
    stepped("100 ns, 7 us iterations, tail 10 %", tailed(0.1, 0.0), 7000.0, 100),
    stepped("1 us, 30 us iterations", NORMAL, 30_000.0, 1000),
    Model { batch: Some(1), ..stepped("40 ns, 530 ns samples, tail 10 %", tailed(0.1, 0.0), 530.0, 40) },
    model(SLOWER, "30 % slow, bursts of 200", bimodal(0.3, 200.0)),
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

static NOISE: Parameter =
    Parameter::listed("noise", "model of noise", (&NAMES, &[]), (NAMES[0], Named::Always));

/// Benchmark of simulated noise. The message size is the seed of the row.
static SIMULATED: Benchmark =
    Benchmark::new::<Noisy>("simulated.latency", "iterations whose times a model of noise gives")
        .layout(Layout::Alone)
        .with(&[&NOISE]);

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
    plan.chosen.set(NOISE.name, [model.name]);
    plan.batch = model.batch;
    plan.sizes = Some((seed * rows..(seed + 1) * rows).map(Bytes).collect());
    let mut all = on_ranks(1, |team| {
        let mut team = team.clone();
        (team.clock, team.time) = Clock::skewed(9, Skew { step_ns: model.step_ns, ..Skew::default() });
        let mut judge = CoverageSink { model, coverage: Coverage::default() };
        let part = Part { choices: vec![Choice { bench: &SIMULATED, preset: &[] }], plan: plan.clone() };
        runner::run_all(&team, &[part], &team.clock, &mut judge, vec!["coverage".into()])?;
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
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let Event::Row(row) = event else { return Ok(()) };
        let (Some(summary), Some(samples)) = (&row.summary, row.samples.first()) else { return Ok(()) };
        let Some(Figure::Value(last)) = row.figures.get("iterations") else { return Ok(()) };
        let tail = row.tail.first().map_or(0, |tail| tail.elapsed_ns.len() as u64);
        let end = *last as u64 - tail;
        let start = end - samples.elapsed_ns.len() as u64 * samples.batch;
        let part = self.model.noise.median(row.bytes.unwrap_or(0), start..end, samples.batch);
        let truth = self.model.iteration_ns * part;
        let covered = u64::from(summary.ci95.is_some_and(|[low, high]| low <= truth && truth <= high));
        let marked =
            u64::from(row.trust.iter().any(|notice| trust::SPOILS_THE_INTERVAL.contains(&notice.code)));
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
}

/// Kernel whose iterations let a random time pass.
struct Noisy {
    team: ThreadTeam,
    stream: NoiseStream,
    iteration_ns: f64,
    /// Part of a nanosecond that has not passed yet.
    left_ns: f64,
    iterations: u64,
}

impl Kernel for Noisy {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let chosen = case.text(&NOISE);
        let model = MODELS.iter().find(|model| Some(model.name) == chosen).unwrap_or(&MODELS[0]);
        let team = cx.fabric::<ThreadTeam>()?.clone();
        let stream = model.noise.stream(case.bytes.0);
        Ok(Noisy { team, stream, iteration_ns: model.iteration_ns, left_ns: 0.0, iterations: 0 })
    }

    fn active(&mut self) -> Result<()> {
        self.iterations += 1;
        self.left_ns += self.iteration_ns * self.stream.next_time();
        self.team.time.advance(self.left_ns as u64);
        self.left_ns -= self.left_ns.floor();
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

/// Times `stamps.len() - 1` batches of a kernel. Stamps are raw readings before the first batch and after each.
pub fn time_batches<K: Kernel>(kernel: &mut K, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
    timed_loop::timed(kernel, clock, batch, stamps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures rows with a fixed seed, so that the result depends on the code only.
    fn measure(name: &str, rows: u64) -> Coverage {
        let model = MODELS.iter().find(|model| model.name == name).unwrap();
        let coverage = cover(model, rows, 3, &Plan::default()).unwrap();
        assert_eq!(coverage.rows, rows, "{name}");
        coverage
    }

    #[test]
    fn intervals_without_a_notice_have_their_nominal_coverage() {
        // 92 to 99.5 %, minus two standard errors of 300 rows. An interval of one standard error would cover 68 %.
        for name in [
            "normal 2 %",
            "normal 10 %",
            "tail 10 %",
            "tail 10 %, r = 0.2",
            "tail 20 %, r = 0.25",
            "gamma 10 %, two share one of two",
            "r = 0.3",
            "5 % slow",
            "5 % slow, bursts of 5",
            "0.1 % in 1000",
            "40 ns, 2 us iterations",
            "40 ns, 20 us iterations",
        ] {
            let found = measure(name, 300);
            let share = found.silent_covered as f64 / found.silent as f64;
            assert!(found.silent > 200 && share >= 0.89, "{name}: {share} of {found:?}");
        }
    }

    #[test]
    fn unreliable_intervals_have_a_notice() {
        for name in ["r = 0.99", "30 % slow", "30 % slow, bursts of 3", "wanders by 5 % in 100"] {
            let found = measure(name, 40);
            assert!(found.marked + found.silent_covered >= 36, "{name}: {found:?}");
        }
    }

    #[test]
    fn rows_of_little_noise_have_no_notice() {
        let found = measure("normal 2 %", 400);
        assert!(found.marked <= 4, "{found:?}");
    }
}
