//! A kernel once it is open, behind a table of functions that is used once a round.

use crate::{
    benchmark::{
        figure::Figures,
        kernel::Kernel,
        layout::Aggregation,
        payload::{Check, Fill},
    },
    error::Result,
    measure::{
        collect::RoundSamples,
        timed_loop::{answered, timed},
    },
    system::clock::Clock,
};

/// A kernel once it is open, behind a table of functions: a dynamic call a round, none an iteration.
pub trait OpenKernel {
    /// Threads that are timed, each into stamps of its own.
    fn clocks(&self) -> usize;
    /// Fills the buffers; see [`Kernel::fill`].
    fn fill(&mut self, fill: Fill) -> Result<()>;
    /// Opens what iterations need; see [`Kernel::begin`].
    fn begin(&mut self) -> Result<()>;
    /// How the times of ranks combine, where it decides that itself.
    fn aggregation(&self, usual: Aggregation) -> Aggregation {
        usual
    }
    /// Iterations in a sample that need no calibration.
    fn batch(&self) -> Option<u64> {
        None
    }
    /// Readings of the clock that so many samples need.
    fn readings(&self, samples: u64) -> u64 {
        samples + 1
    }
    /// Runs a round on a timed rank and writes the readings of each thread into its stamps.
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()>;
    /// Runs a round on a rank that answers.
    fn answered(&mut self, batch: u64, samples: u64) -> Result<()>;
    /// What the readings of one thread say.
    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        RoundSamples::chained(stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect())
    }
    /// Closes what `begin` opened; see [`Kernel::end`].
    fn end(&mut self) -> Result<()>;
    /// Returns figures beside times; see [`Kernel::figures`].
    fn figures(&mut self) -> Result<Figures>;
    /// Verifies what arrived; see [`Kernel::check`].
    fn check(&mut self, fill: Fill) -> Result<Check>;
    /// Releases the kernel; see [`Kernel::close`].
    fn close(self: Box<Self>) -> Result<()>;
}

/// A kernel, and the iterations in a sample where they need no calibration.
pub struct SingleThreaded<K>(pub K, pub Option<u64>);

impl<K: Kernel> OpenKernel for SingleThreaded<K> {
    fn clocks(&self) -> usize {
        1
    }

    fn batch(&self) -> Option<u64> {
        self.1
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.0.fill(fill)
    }

    fn begin(&mut self) -> Result<()> {
        self.0.begin()
    }

    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        stamps.iter_mut().try_for_each(|stamps| timed(&mut self.0, clock, batch, stamps))
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        answered(&mut self.0, batch * samples)
    }

    fn end(&mut self) -> Result<()> {
        self.0.end()
    }

    fn figures(&mut self) -> Result<Figures> {
        self.0.figures()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.0.check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}
