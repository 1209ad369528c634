//! Random numbers of the simulated sweeps of tests.

use ombx_record::random::SplitMix64;

pub(super) struct Dice(pub(super) SplitMix64);

impl Dice {
    pub(super) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 2f64.powi(53)
    }

    /// Draws a factor up to 10, of this share of all draws.
    pub(super) fn disturbance(&mut self, share: f64) -> f64 {
        if self.uniform() < share { 10f64.powf(self.uniform()) } else { 1.0 }
    }

    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
