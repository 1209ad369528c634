//! The work of a benchmark on one rank. A kernel reads no clock, loops over no sizes and prints nothing.

use crate::{
    benchmark::{
        BusTraffic, Case, ConnectionCounters, Context, Figures, Method, Metric, Work,
        payload::{Check, Fill},
    },
    error::Result,
};

/// Work of a benchmark on one rank.
///
/// The engine calls these functions on every rank of a case, in this order: `open`, `fill`, `begin`, many times `active` or
/// `passive` according to the role, `end`, `figures`, `check`. It then repeats `fill` to `check` for single iterations, each
/// with a fresh pattern, and calls `close`. Only `active` is timed.
pub trait Kernel: Sized + 'static {
    /// Figure that is shown first.
    const METRIC: Metric;
    /// Description of the method, for the catalogue of benchmarks.
    const METHOD: Method;

    /// Returns whether the kernel supports a case; see [`Benchmark::either`](crate::benchmark::Benchmark::either).
    fn supports(_case: &Case) -> bool {
        true
    }
    /// Returns the bytes, operations and legs of one iteration.
    fn work(case: &Case) -> Work;
    /// Returns what defines the algorithm and bus bandwidth; `None` if the operation has none.
    fn bus_traffic(_case: &Case) -> Option<BusTraffic> {
        None
    }
    /// Opens the kernel for a case. Collective, untimed.
    ///
    /// # Errors
    /// [`Error::unsupported`](crate::error::Error::unsupported) on any rank skips the case on all ranks.
    fn open(cx: &Context<'_>, case: &Case) -> Result<Self>;
    /// Writes a pattern into send buffers and poisons receive buffers. Untimed.
    fn fill(&mut self, _fill: Fill) -> Result<()> {
        Ok(())
    }
    /// Opens what iterations need, for instance a lock. Untimed.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// Returns to where the iterations began, if they advance, as those of a pointer in a file do. Untimed, before each sample of a
    /// paced kernel, whose ranks are synchronised afterwards.
    fn rewind(&mut self) -> Result<()> {
        Ok(())
    }
    /// Runs one iteration on a timed rank.
    fn active(&mut self) -> Result<()>;
    /// Runs the same iteration on a rank that is not timed.
    fn passive(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened. Untimed.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Compares what arrived with what `fill` wrote. A mismatch is a [`Check`], not an error. Untimed.
    fn check(&mut self, _fill: Fill) -> Result<Check> {
        Ok(Check::Unsupported)
    }
    /// Returns how many checked iterations show what one iteration may have wrong; a row counts its checked iterations divided by it.
    ///
    /// It is more than 1 where `check` sees a part of what an iteration delivers.
    fn iterations_per_check(_case: &Case) -> u64 {
        1
    }
    /// Returns figures of the iterations between `begin` and `end`, in addition to times. Collective, untimed; the row keeps
    /// those of rank 0.
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// Returns the kernel's counters of the connections on which this rank sends. Untimed, between rounds, on rank 0 only.
    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        Ok(None)
    }
    /// Releases the kernel. Collective, untimed.
    fn close(self) -> Result<()> {
        Ok(())
    }
}
