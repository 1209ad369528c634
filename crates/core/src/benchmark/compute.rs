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
        let pass = Compute::new(PASS);
        let passes = (0..5).map(|_| {
            let since = Since::now();
            pass.run();
            since.elapsed()
        });
        Compute::new(steps_lasting(time, passes))
    }

    fn new(steps: u64) -> Compute {
        Compute { steps, state: Cell::new(1) }
    }
}

/// Returns the number of steps that last `time`, from the times of passes of [`PASS`] steps.
fn steps_lasting(time: Duration, passes: impl Iterator<Item = Duration>) -> u64 {
    let fastest = passes.min().unwrap_or_default().as_secs_f64().max(1e-9);
    (time.as_secs_f64() / fastest * PASS as f64).max(1.0) as u64
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

    #[test]
    fn the_fastest_pass_gives_the_number_of_steps() {
        let ms = Duration::from_millis;
        let steps = |time, passes: &[u64]| steps_lasting(time, passes.iter().copied().map(ms));
        assert_eq!([steps(ms(5), &[3, 1, 2]), steps(ms(1), &[2])], [5 * PASS, PASS / 2]);
        assert_eq!(steps(Duration::ZERO, &[1]), 1);
    }

    #[test]
    fn every_step_follows_from_the_one_before() {
        let state = |steps, runs| {
            let compute = Compute::new(steps);
            (0..runs).for_each(|_| compute.run());
            compute.state.get()
        };
        assert_eq!(state(1, 1), 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407);
        assert_eq!(state(6, 1), state(2, 3));
        assert_ne!(state(6, 1), state(5, 1));
        assert!(Compute::lasting(Duration::from_millis(1)).steps > 1);
    }
}
