//! Work that keeps a CPU busy for a known time without communicating or reading a clock.

use std::{cell::Cell, hint::black_box, time::Duration};

use crate::system::clock::Since;

/// What keeps a rank busy.
pub trait Busy {
    /// Is busy once.
    fn run(&self);
}

/// A number of arithmetic steps that takes a given time on this CPU.
#[derive(Debug, Clone)]
pub struct Compute {
    steps: u64,
    /// Where the last run ended and the next one begins, so that a CPU cannot do two at once.
    reached: Cell<u64>,
}

/// Steps of one calibration pass; the fastest of several passes counts.
const PASS: u64 = 200_000;

impl Compute {
    /// Calibrates, in a few milliseconds.
    pub fn lasting(time: Duration) -> Compute {
        let steps = |steps| Compute { steps, reached: Cell::new(1) };
        let pass = steps(PASS);
        let fastest = (0..5).map(|_| {
            let since = Since::now();
            pass.run();
            since.elapsed()
        });
        let fastest = fastest.min().unwrap_or_default().as_secs_f64().max(1e-9);
        steps((time.as_secs_f64() / fastest * PASS as f64).max(1.0) as u64)
    }
}

impl Busy for Compute {
    /// Computes: each step depends on the one before, so that nothing can be left out or done at once.
    #[inline(never)]
    fn run(&self) {
        let mut x = black_box(self.reached.get());
        for _ in 0..self.steps {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        self.reached.set(black_box(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_about_as_long_as_it_says() {
        let wanted = Duration::from_millis(5);
        // A busy machine spoils a calibration or a run; a wrong calibration is wrong every time.
        let ratio = || {
            let compute = Compute::lasting(wanted);
            let since = Since::now();
            compute.run();
            since.elapsed().as_secs_f64() / wanted.as_secs_f64()
        };
        let ratios: Vec<f64> = (0..20).map(|_| ratio()).collect();
        assert!(ratios.iter().any(|r| (0.8..1.25).contains(r)), "{ratios:?}");
    }
}
