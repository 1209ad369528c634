//! An open kernel: its steps outside the timed loops, and its rounds of samples. The type of the kernel is forgotten.

use ombx_record::{
    error::{Error, Result},
    result::{Aggregation, Check, ConnectionCounters, Figures},
};

use crate::{
    benchmark::{Case, Context, Kernel, payload::Fill},
    clock::Clock,
    measure::{
        collect::RoundSamples,
        timed_loop::{Iteration, answered, paced, timed},
    },
    pacing::start::Start,
};

/// Opens a kernel for a case.
pub type OpenLoops<L = dyn Loops> = fn(&Context<'_>, &Case) -> Result<Box<L>>;

/// Opens a kernel and forgets its type.
pub fn open<K: Kernel>(cx: &Context<'_>, case: &Case) -> Result<Box<dyn Loops>> {
    Ok(Box::new(K::open(cx, case)?))
}

/// Opens a kernel for a thread and forgets its type.
pub(crate) fn open_on_thread<K: Kernel + Send>(
    cx: &Context<'_>,
    case: &Case,
) -> Result<Box<dyn Loops + Send>> {
    Ok(Box::new(K::open(cx, case)?))
}

/// Steps of an open kernel outside its loops. The engine calls them through a trait object, so that it is compiled once.
pub trait Steps {
    /// Fills the buffers; see [`Kernel::fill`].
    fn fill(&mut self, fill: Fill) -> Result<()>;
    /// Opens what iterations need; see [`Kernel::begin`].
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened; see [`Kernel::end`].
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns figures in addition to times; see [`Kernel::figures`].
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// Returns the counters of the connections; see [`Kernel::connections`].
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Ok(None)
    }
    /// Verifies what arrived; see [`Kernel::check`].
    fn check(&mut self, fill: Fill) -> Result<Check>;
    /// Releases the kernel; see [`Kernel::close`].
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl<K: Kernel> Steps for K {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        Kernel::fill(self, fill)
    }

    fn begin(&mut self) -> Result<()> {
        Kernel::begin(self)
    }

    fn end(&mut self) -> Result<()> {
        Kernel::end(self)
    }

    fn figures(&mut self) -> Result<Figures> {
        Kernel::figures(self)
    }

    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Kernel::connections(self)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Kernel::check(self, fill)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Kernel::close(*self)
    }
}

/// Samples whose start the ranks agree on.
pub trait PacedLoop {
    /// Times batches one by one; see `paced`.
    fn paced(&mut self, start: &mut dyn Start, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()>;
}

impl<I: Iteration> PacedLoop for I {
    fn paced(&mut self, start: &mut dyn Start, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
        let mut start = start;
        paced(self, &mut start, clock, batch, stamps)
    }
}

/// An open kernel with its timed loops, which alone are compiled for its type. Each is one dynamic call per round.
pub trait Loops: Steps + PacedLoop {
    /// Times batches back to back; see `timed`.
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()>;
    /// Runs iterations on a rank that answers; see `answered`.
    fn answered(&mut self, iterations: u64) -> Result<()>;
}

impl<K: Kernel> Loops for K {
    fn timed(&mut self, clock: &Clock, batch: u64, stamps: &mut [u64]) -> Result<()> {
        timed(self, clock, batch, stamps)
    }

    fn answered(&mut self, iterations: u64) -> Result<()> {
        answered(self, iterations)
    }
}

/// What the engine runs for a case: an open kernel, and how its samples start. The engine makes one dynamic call per round and none
/// per iteration.
pub trait OpenKernel {
    /// Returns the kernel.
    fn steps(&mut self) -> &mut dyn Steps;
    /// Returns the number of timed threads; each has its own stamps.
    fn clocks(&self) -> usize {
        1
    }
    /// Fills the buffers.
    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.steps().fill(fill)
    }
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
    /// Returns whether the samples may be divided into rounds; see [`alignment`](crate::measure::alignment). Figures of a kernel that are
    /// medians of all its samples go with a headline that is one.
    fn has_rounds(&self) -> bool {
        self.interval_ns().is_none()
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
    ///
    /// # Errors
    /// A usage error if the kernel times every rank.
    fn answered(&mut self, _batch: u64, _samples: u64) -> Result<()> {
        Err(Error::usage("this benchmark times every rank: give its entry Layout::Everyone"))
    }
    /// Converts the clock readings of one thread to samples.
    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        RoundSamples::chained(stamps.windows(2).map(|w| clock.nanos(w[0], w[1])).collect())
    }
    /// Returns figures in addition to times.
    fn figures(&mut self) -> Result<Figures> {
        self.steps().figures()
    }
    /// Verifies what arrived.
    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.steps().check(fill)
    }
    /// Releases the kernel.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
