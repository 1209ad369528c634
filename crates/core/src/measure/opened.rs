//! Open kernels as trait objects, which are called once per round.

use crate::{
    benchmark::{
        Aggregation, ConnectionCounters, Figures, Kernel,
        payload::{Check, Fill},
    },
    error::Result,
    measure::{
        collect::RoundSamples,
        timed_loop::{answered, timed},
    },
    system::clock::Clock,
};

/// An open kernel. The engine makes one dynamic call per round and none per iteration.
pub trait OpenKernel {
    /// Returns the number of timed threads; each has its own stamps.
    fn clocks(&self) -> usize;
    /// Fills the buffers; see [`Kernel::fill`].
    fn fill(&mut self, fill: Fill) -> Result<()>;
    /// Opens what iterations need; see [`Kernel::begin`].
    fn begin(&mut self) -> Result<()>;
    /// Returns how the times of ranks are aggregated. `usual` is the aggregation of the layout.
    fn aggregation(&self, usual: Aggregation) -> Aggregation {
        usual
    }
    /// Returns the iterations per sample if the kernel fixes them; `None` if they are calibrated.
    fn batch(&self) -> Option<u64> {
        None
    }
    /// Returns the mean interval of samples that follow a schedule; `None` if each sample starts after the one before it. A schedule
    /// is run in one round, because queues form while requests follow one another.
    fn interval_ns(&self) -> Option<f64> {
        None
    }
    /// Returns the minimum time of a sample on rank 0, in nanoseconds. Collective.
    fn least_sample_ns(&mut self, _clock: &Clock) -> Result<f64> {
        Ok(0.0)
    }
    /// Returns the number of clock readings for `samples` samples.
    fn readings(&self, samples: u64) -> u64 {
        samples + 1
    }
    /// Prepares sampling with what the warm-up has shown. Called once, after the warm-up. Collective, untimed.
    fn warmed_up(&mut self, _clock: &Clock) -> Result<()> {
        Ok(())
    }
    /// Runs a round on a timed rank. Writes the clock readings of each thread to its stamps.
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()>;
    /// Runs a round like [`OpenKernel::timed`] of the operation alone, if the kernel also times something else.
    fn timed_alone(&mut self, clock: &Clock, batch: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        self.timed(clock, batch, stamps)
    }
    /// Runs a round on a rank that answers.
    fn answered(&mut self, batch: u64, samples: u64) -> Result<()>;
    /// Converts the clock readings of one thread to samples.
    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        RoundSamples::chained(stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect())
    }
    /// Closes what `begin` opened; see [`Kernel::end`].
    fn end(&mut self) -> Result<()>;
    /// Returns figures in addition to times; see [`Kernel::figures`].
    fn figures(&mut self) -> Result<Figures>;
    /// Returns the counters of the connections; see [`Kernel::connections`].
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Ok(None)
    }
    /// Verifies what arrived; see [`Kernel::check`].
    fn check(&mut self, fill: Fill) -> Result<Check>;
    /// Releases the kernel; see [`Kernel::close`].
    fn close(self: Box<Self>) -> Result<()>;
}

/// A kernel on one thread, and the iterations per sample if they are fixed.
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

    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        self.0.connections()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.0.check(fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.close()
    }
}
