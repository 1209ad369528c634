//! Models of noise with known median: the times of a simulated benchmark.

use statrs::distribution::{ContinuousCDF, Normal};

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
    /// Independent with an exponential tail above the undisturbed time.
    Tailed {
        /// Mean of the added time, relative to the undisturbed time.
        mean: f64,
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
}

impl Noise {
    /// Time of an undisturbed iteration in nanoseconds. It is so long that each iteration becomes a sample.
    pub const UNDISTURBED_NS: f64 = 100_000.0;

    /// Returns the times that follow from a seed.
    pub fn stream(self, seed: u64) -> NoiseStream {
        let mut random = Random(seed ^ 0x5DEE_CE66_D1CE_4E5B);
        let state = match self {
            Noise::Correlated { .. } | Noise::Wander { .. } => random.normal(),
            Noise::Bimodal { share, .. } => f64::from(random.uniform() < share),
            Noise::Swing { .. } => random.uniform(),
            Noise::Independent { .. } | Noise::Tailed { .. } | Noise::Ramp { .. } => 0.0,
        };
        NoiseStream { noise: self, random, state, iteration: 0.0 }
    }

    /// Returns the true median of a range of iterations of a stream, in nanoseconds.
    ///
    /// For models that drift, it is the median of the distribution over these iterations. For the others, it is the
    /// median of the process.
    pub fn median_ns(self, seed: u64, iterations: std::ops::Range<u64>) -> f64 {
        let part = match self {
            Noise::Independent { .. } | Noise::Correlated { .. } | Noise::Wander { .. } => 1.0,
            Noise::Tailed { mean } => 1.0 + mean * std::f64::consts::LN_2,
            Noise::Bimodal { share, .. } => {
                (MODE_SCATTER * standard().inverse_cdf(0.5 / (1.0 - share))).exp()
            }
            Noise::Ramp { sigma, .. } | Noise::Swing { sigma, .. } => {
                let stream = self.stream(seed);
                let step = ((iterations.end - iterations.start) as usize / 512).max(1);
                let levels: Vec<f64> = iterations.step_by(step).map(|i| stream.level(i as f64)).collect();
                median_of_mixture(&levels, sigma).exp()
            }
        };
        Noise::UNDISTURBED_NS * part
    }
}

fn standard() -> Normal {
    Normal::standard()
}

/// Returns the median of a mixture of normal distributions with equal weights and these means.
fn median_of_mixture(levels: &[f64], sigma: f64) -> f64 {
    let normal = standard();
    let mut low = levels.iter().copied().fold(f64::INFINITY, f64::min);
    let mut high = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        let below: f64 = levels.iter().map(|level| normal.cdf((middle - level) / sigma)).sum();
        if below * 2.0 < levels.len() as f64 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

impl NoiseStream {
    /// Returns the time of the next iteration in nanoseconds.
    pub fn next_ns(&mut self) -> f64 {
        let random = &mut self.random;
        let part = match self.noise {
            Noise::Independent { sigma } => (sigma * random.normal()).exp(),
            Noise::Tailed { mean } => 1.0 - mean * (1.0 - random.uniform()).ln(),
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
        Noise::UNDISTURBED_NS * part
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

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats;

    #[test]
    fn samples_have_the_stated_median() {
        let models = [
            Noise::Independent { sigma: 0.5 },
            Noise::Tailed { mean: 0.3 },
            Noise::Correlated { phi: 0.6, sigma: 0.1 },
            Noise::Bimodal { share: 0.3, apart: 0.5, run: 0.0 },
            Noise::Bimodal { share: 0.45, apart: 0.5, run: 5.0 },
            Noise::Ramp { growth: 0.001, sigma: 0.05 },
            Noise::Swing { amplitude: 0.1, period: 1500.0, sigma: 0.05 },
            Noise::Wander { amplitude: 0.05, memory: 20.0, sigma: 0.05 },
        ];
        for noise in models {
            let mut stream = noise.stream(7);
            let times: Vec<f64> = (0..400_000).map(|_| stream.next_ns()).collect();
            let (found, truth) = (stats::median(&times).unwrap(), noise.median_ns(7, 0..400_000));
            assert!((found / truth - 1.0).abs() < 0.004, "{noise:?}: {found} against {truth}");
        }
    }
}
