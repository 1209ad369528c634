//! Models of noise with known median: the times of a simulated benchmark, in units of an undisturbed iteration.

use std::{collections::VecDeque, f64::consts::FRAC_1_SQRT_2};

use proptest::test_runner::{Config, RngSeed};

/// Relative standard deviation within a mode.
const MODE_SCATTER: f64 = 0.02;

/// A model of noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Independent and log-normal.
    Independent {
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Exponential tail above the undisturbed time.
    Tailed {
        /// Mean of the added time, relative to the undisturbed time.
        mean: f64,
        /// Correlation of consecutive iterations, before their distribution is made exponential.
        phi: f64,
    },
    /// Gamma-distributed tail above the undisturbed time: a sum of exponential times, some of which consecutive iterations share.
    Gamma {
        /// Mean of the added time, relative to the undisturbed time.
        mean: f64,
        /// Number of exponential times.
        shape: usize,
        /// How many of them are drawn anew in each iteration.
        fresh: usize,
    },
    /// First-order autoregression of the logarithm.
    Correlated {
        /// Correlation of consecutive iterations.
        phi: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Two modes; slow iterations may come in runs.
    Bimodal {
        /// Probability of the slow mode, below 0.5.
        share: f64,
        /// Extra time of the slow mode, relative to the undisturbed time.
        apart: f64,
        /// Mean length of runs of slow iterations; 0 for independent iterations.
        run: f64,
    },
    /// Linear growth with independent noise.
    Ramp {
        /// Growth per 1000 iterations, relative to the undisturbed time.
        growth: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Sine wave of random phase with independent noise.
    Swing {
        /// Amplitude of the logarithm.
        amplitude: f64,
        /// Period in iterations.
        period: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Slow autoregression around the median with independent noise.
    Wander {
        /// Standard deviation of the autoregression, in the logarithm.
        amplitude: f64,
        /// Correlation length in iterations.
        memory: f64,
        /// Standard deviation of the noise, in the logarithm.
        sigma: f64,
    },
}

/// Times of consecutive iterations.
#[derive(Debug, Clone)]
pub struct NoiseStream {
    noise: Noise,
    random: Random,
    /// Current value, mode or phase of the process.
    state: f64,
    iteration: f64,
    /// Exponential times of the previous iteration.
    recent: VecDeque<f64>,
}

impl Noise {
    /// Time of an undisturbed iteration in nanoseconds. It is so long that each iteration becomes a sample.
    pub const UNDISTURBED_NS: f64 = 100_000.0;

    /// Returns the times that follow from a seed.
    pub fn stream(self, seed: u64) -> NoiseStream {
        let mut random = Random(seed ^ 0x5DEE_CE66_D1CE_4E5B);
        let state = match self {
            Noise::Correlated { .. } | Noise::Wander { .. } | Noise::Tailed { .. } => random.normal(),
            Noise::Bimodal { share, .. } => f64::from(random.uniform() < share),
            Noise::Swing { .. } => random.uniform(),
            Noise::Independent { .. } | Noise::Gamma { .. } | Noise::Ramp { .. } => 0.0,
        };
        let recent = match self {
            Noise::Gamma { shape, .. } => (0..shape).map(|_| random.exponential()).collect(),
            _ => VecDeque::new(),
        };
        NoiseStream { noise: self, random, state, iteration: 0.0, recent }
    }

    /// Returns the true median of the mean of `batch` iterations, over a range of iterations of a stream.
    ///
    /// For models that drift, it is the median of the distribution over these iterations. For the others, it is the median of the
    /// process. Only independent log-normal and exponential times have a known median for batches of several iterations; for the
    /// others `batch` is 1.
    pub fn median(self, seed: u64, iterations: std::ops::Range<u64>, batch: u64) -> f64 {
        let batch = batch as f64;
        match self {
            // A sum of log-normal times is almost log-normal (Fenton 1960).
            Noise::Independent { sigma } => {
                let variance = sigma * sigma;
                ((variance - (variance.exp_m1() / batch).ln_1p()) / 2.0).exp()
            }
            Noise::Correlated { .. } | Noise::Wander { .. } => 1.0,
            Noise::Tailed { mean, .. } => 1.0 + mean * gamma_median(batch) / batch,
            Noise::Gamma { mean, shape, .. } => 1.0 + mean * gamma_median(shape as f64) / shape as f64,
            Noise::Bimodal { share, .. } => {
                (MODE_SCATTER * root(-40.0..40.0, |x| normal_below(x) - 0.5 / (1.0 - share))).exp()
            }
            Noise::Ramp { sigma, .. } | Noise::Swing { sigma, .. } => {
                let stream = self.stream(seed);
                let step = ((iterations.end - iterations.start) as usize / 512).max(1);
                let levels: Vec<f64> = iterations.step_by(step).map(|i| stream.level(i as f64)).collect();
                median_of_mixture(&levels, sigma).exp()
            }
        }
    }
}

/// Returns the median of a sum of `terms` exponential times of mean 1. Its tail is that of a Poisson distribution.
fn gamma_median(terms: f64) -> f64 {
    let tail = |x: f64| -> f64 {
        (0..terms as usize).map(|i| i as f64).map(|i| (i * x.ln() - x - libm::lgamma(i + 1.0)).exp()).sum()
    };
    root(0.0..terms, |x| 0.5 - tail(x))
}

/// Returns the probability of at most x, of a standard normal distribution.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Returns the median of a mixture of normal distributions with equal weights and these means.
fn median_of_mixture(levels: &[f64], sigma: f64) -> f64 {
    let low = levels.iter().copied().fold(f64::INFINITY, f64::min);
    let high = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let below = |x: f64| levels.iter().map(|level| normal_below((x - level) / sigma)).sum::<f64>();
    root(low..high, |x| below(x) * 2.0 - levels.len() as f64)
}

/// Returns where an ascending function is 0, by bisection.
fn root(range: std::ops::Range<f64>, function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (range.start, range.end);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if function(middle) < 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

impl NoiseStream {
    /// Returns the time of the next iteration.
    pub fn next_time(&mut self) -> f64 {
        let random = &mut self.random;
        let time = match self.noise {
            Noise::Independent { sigma } => (sigma * random.normal()).exp(),
            Noise::Tailed { mean, phi } => {
                self.state = phi * self.state + (1.0 - phi * phi).sqrt() * random.normal();
                1.0 - mean * normal_below(-self.state).ln()
            }
            Noise::Gamma { mean, shape, fresh } => {
                for _ in 0..fresh {
                    self.recent.pop_front();
                    self.recent.push_back(random.exponential());
                }
                1.0 + mean * self.recent.iter().sum::<f64>() / shape as f64
            }
            Noise::Correlated { phi, sigma } => {
                self.state = phi * self.state + (1.0 - phi * phi).sqrt() * random.normal();
                (sigma * self.state).exp()
            }
            Noise::Bimodal { share, apart, run } => {
                let slow = self.state > 0.5;
                // Independent iterations leave the slow mode with the probability of the fast mode.
                let leave = if run > 0.0 { 1.0 / run } else { 1.0 - share };
                let change = if slow { leave } else { leave * share / (1.0 - share) };
                if random.uniform() < change {
                    self.state = 1.0 - self.state;
                }
                (1.0 + apart * self.state) * (MODE_SCATTER * random.normal()).exp()
            }
            Noise::Ramp { sigma, .. } | Noise::Swing { sigma, .. } => {
                let noise = sigma * random.normal();
                (self.level(self.iteration) + noise).exp()
            }
            Noise::Wander { amplitude, memory, sigma } => {
                let phi = (-1.0 / memory).exp();
                self.state = phi * self.state + (1.0 - phi * phi).sqrt() * random.normal();
                (amplitude * self.state + sigma * random.normal()).exp()
            }
        };
        self.iteration += 1.0;
        time
    }

    /// Returns the logarithmic drift at an iteration; 0 for models without drift.
    fn level(&self, iteration: f64) -> f64 {
        match self.noise {
            Noise::Ramp { growth, .. } => (growth * iteration / 1000.0).ln_1p(),
            Noise::Swing { amplitude, period, .. } => {
                amplitude * (std::f64::consts::TAU * (self.state + iteration / period)).sin()
            }
            _ => 0.0,
        }
    }
}

/// Random numbers by SplitMix64.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Environment variable with the seed.
const VARIABLE: &str = "OMBX_TEST_SEED";
/// Seed where the variable is not set.
const DEFAULT: u64 = 1;

/// Returns the seed of random inputs: the number in `OMBX_TEST_SEED`, or the same number in every run.
///
/// Prints the seed. The test harness shows it if the test fails.
///
/// # Panics
/// The variable is not a whole number.
#[expect(clippy::print_stdout, reason = "the test harness shows it below a failed test")]
pub fn seed() -> u64 {
    let seed = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{VARIABLE}={text}: give a whole number")),
        Err(_) => DEFAULT,
    };
    println!("random inputs: {VARIABLE}={seed}");
    seed
}

/// Returns the options of proptest with [`seed`].
pub fn seeded() -> Config {
    Config { rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::stats;

    #[test]
    fn samples_have_the_stated_median() {
        let models = [
            Noise::Independent { sigma: 0.5 },
            Noise::Tailed { mean: 0.3, phi: 0.0 },
            Noise::Tailed { mean: 0.3, phi: 0.3 },
            Noise::Gamma { mean: 0.3, shape: 4, fresh: 4 },
            Noise::Gamma { mean: 0.3, shape: 4, fresh: 1 },
            Noise::Correlated { phi: 0.6, sigma: 0.1 },
            Noise::Bimodal { share: 0.3, apart: 0.5, run: 0.0 },
            Noise::Bimodal { share: 0.45, apart: 0.5, run: 5.0 },
            Noise::Ramp { growth: 0.001, sigma: 0.05 },
            Noise::Swing { amplitude: 0.1, period: 1500.0, sigma: 0.05 },
            Noise::Wander { amplitude: 0.05, memory: 20.0, sigma: 0.05 },
        ];
        for noise in models {
            let mut stream = noise.stream(7);
            let times: Vec<f64> = (0..400_000).map(|_| stream.next_time()).collect();
            let (found, truth) = (stats::median(&times).unwrap(), noise.median(7, 0..400_000, 1));
            assert!((found / truth - 1.0).abs() < 0.004, "{noise:?}: {found} against {truth}");
        }
    }

    #[test]
    fn batches_have_the_stated_median() {
        for noise in [Noise::Independent { sigma: 0.3 }, Noise::Tailed { mean: 0.3, phi: 0.0 }] {
            for batch in [2, 10] {
                let mut stream = noise.stream(7);
                let mut mean = || (0..batch).map(|_| stream.next_time()).sum::<f64>() / batch as f64;
                let times: Vec<f64> = (0..100_000).map(|_| mean()).collect();
                let (found, truth) = (stats::median(&times).unwrap(), noise.median(7, 0..1, batch));
                assert!((found / truth - 1.0).abs() < 0.004, "{noise:?} x {batch}: {found} against {truth}");
            }
        }
    }
}
