//! Computation of a known length that neither communicates nor reads a clock.

use std::{cell::Cell, hint::black_box, time::Duration};

use crate::system::clock::Since;

/// Work that a rank does while an operation is in flight.
pub trait Busy {
    /// Does the work once.
    fn run(&self);
}

/// Arithmetic steps that take a given time on this CPU.
#[derive(Debug, Clone)]
pub struct Compute {
    steps: u64,
    /// Result of the last run and input of the next, so that a CPU cannot overlap two runs.
    state: Cell<u64>,
}

/// Steps of one calibration pass. The fastest of five passes counts.
const PASS: u64 = 200_000;

impl Compute {
    /// Returns a computation that lasts `time`. Calibration takes a few milliseconds.
    pub fn lasting(time: Duration) -> Compute {
        let steps = |steps| Compute { steps, state: Cell::new(1) };
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
    /// Runs all steps. Each depends on the one before, so that neither compiler nor CPU can skip or overlap steps.
    #[inline(never)]
    fn run(&self) {
        let mut x = black_box(self.state.get());
        for _ in 0..self.steps {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        self.state.set(black_box(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the CPU time of this thread.
    fn cpu_time() -> Duration {
        rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
    }

    #[test]
    fn the_computation_takes_about_the_stated_time() {
        let wanted = Duration::from_millis(5);
        // CPU time leaves out other programs. They may still spoil one calibration, but not all.
        let ratio = || {
            let compute = Compute::lasting(wanted);
            let before = cpu_time();
            compute.run();
            (cpu_time() - before).as_secs_f64() / wanted.as_secs_f64()
        };
        let ratios: Vec<f64> = (0..20).map(|_| ratio()).collect();
        assert!(ratios.iter().any(|r| (0.8..1.25).contains(r)), "{ratios:?}");
    }
}
