//! What one iteration does: its bytes and operations, its metric, and the roles of ranks.

use std::{cell::Cell, hint::black_box, time::Duration};

use serde::{Deserialize, Serialize};

use crate::system::clock::Since;

/// Figure of a benchmark that is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Time of one leg in microseconds.
    Latency,
    /// Bytes per time in MB/s (10^6 bytes), and messages per second.
    Bandwidth,
}

impl Metric {
    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Latency => "latency",
            Metric::Bandwidth => "bandwidth",
        }
    }

    /// Returns the unit of the headline.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::Latency => "us",
            Metric::Bandwidth => "MB/s",
        }
    }
}

/// Amount of work of one iteration. The engine derives all figures from it; kernels never divide a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Payload bytes of all operations, in both directions and over all pairs.
    pub bytes: u64,
    /// Operations (messages).
    pub ops: u64,
    /// Equal legs that follow one another: 2 in a ping-pong.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub legs: u64,
}

/// Bytes that define the algorithm and the bus bandwidth of a collective operation, as nccl-tests does (doc/PERFORMANCE.md).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusTraffic {
    /// Bytes of the largest buffer of a rank. Divided by the time, they are the algorithm bandwidth.
    pub bytes: u64,
    /// Part of these bytes that must pass the busiest link of a rank. Multiplied by it, the algorithm bandwidth becomes the bus
    /// bandwidth, which can be compared with the bandwidth of a link whatever the number of ranks.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub factor: f64,
}

/// Role of a rank in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The rank is timed.
    Active,
    /// The rank answers.
    Passive,
}

/// Method of a kernel in three sentences, for the catalogue of benchmarks.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    /// What happens between two readings of the clock.
    pub timed: &'static str,
    /// What is deliberately not timed.
    pub untimed: &'static str,
    /// Counterpart in OMB, IMB or LinkTest, and the differences.
    pub like: &'static str,
}

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
mod compute_tests {
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
