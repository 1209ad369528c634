//! What a benchmark is: one rank's work, which never reads a clock, loops over sizes, counts iterations or prints.

use crate::{
    benchmark::{
        case::Case,
        context::Context,
        figure::Figures,
        payload::{Check, Fill},
        work::{Method, Metric, Work},
    },
    error::Result,
};

/// One benchmark's work, as one rank sees it.
///
/// The engine calls, on every rank of the case and in this order: `open`, `fill`, `begin`, then many times `active` or
/// `passive` by role, `end`, `figures`, `check`, once more `fill` to `check` with a fresh pattern, and `close`. Only `active` is timed.
pub trait Kernel: Sized {
    /// What the headline is.
    const METRIC: Metric;
    /// What is timed, what is not, and which benchmark of others it corresponds to.
    const METHOD: Method;

    /// Whether it is the kernel for such a case; [`crate::benchmark::entry::Benchmark::either`] has another for those that it cannot.
    fn carries(_case: &Case) -> bool {
        true
    }
    /// Bytes, operations and legs of one iteration.
    fn work(case: &Case) -> Work;
    /// Collective, untimed. [`Error::unsupported`] on any rank skips the case on all of them.
    fn open(cx: &Context<'_>, case: &Case) -> Result<Self>;
    /// Writes a pattern into what will be sent and poisons what will be received.
    fn fill(&mut self, _fill: Fill) -> Result<()> {
        Ok(())
    }
    /// Opens what must be open around iterations, for instance a lock; untimed.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    /// One iteration on a timed rank.
    fn active(&mut self) -> Result<()>;
    /// The same iteration on its peer.
    fn passive(&mut self) -> Result<()> {
        Ok(())
    }
    /// Closes what `begin` opened; untimed.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Compares what arrived with what `fill` sent; a payload mismatch is a [`Check`], not an error.
    fn check(&mut self, _fill: Fill) -> Result<Check> {
        Ok(Check::Unsupported)
    }
    /// What it tells beside times, of the iterations between `begin` and `end`. Collective, untimed; rank 0's is kept.
    fn figures(&mut self) -> Result<Figures> {
        Ok(Figures::new())
    }
    /// Collective, untimed.
    fn close(self) -> Result<()> {
        Ok(())
    }
}
