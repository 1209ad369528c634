//! An open case as load: its iterations are repeated until the ranks that are measured are done, and verified.

use std::time::Duration;

use crate::{
    benchmark::payload::{Check, Fill},
    error::{Error, Result},
    measure::rounds::{OpenCase, Sampling},
};

/// Time between two tests of whether the ranks that are measured are done, in nanoseconds. A test is a small broadcast among the
/// ranks of the load.
const ROUND_NS: u64 = 10_000_000;

impl OpenCase<'_, '_> {
    /// Repeats iterations until those that are measured are done, then verifies. Collective over the ranks of the load.
    ///
    /// `bytes` is what all ranks send in an iteration.
    pub(crate) fn repeat(&mut self, background: &dyn Background, fill: Fill, bytes: u64) -> Result<()> {
        let team = self.session.team;
        // The first iteration opens connections.
        self.iterate(1)?;
        background.start()?;
        let (mut iterations, mut spent_ns, mut next) = (0, 0u64, 1);
        while next > 0 {
            let (_, wall_ns) = self.iterate(next)?;
            (iterations, spent_ns) = (iterations + next, spent_ns + wall_ns);
            self.session.sink.alive();
            let fitting = (ROUND_NS * next / wall_ns.max(1)).clamp(1, 2 * next);
            next = team.broadcast_value(if background.is_over()? { 0 } else { fitting })?;
        }
        while !background.is_over()? {
            std::thread::yield_now();
        }
        self.kernel.end()?;
        let last = Fill { iterations: iterations + 1, ..fill };
        let (check, _) =
            self.verify(last, 1, &Sampling::of_load(iterations, Duration::from_nanos(spent_ns)))?;
        background.ended(Repeated { bytes: bytes * iterations, spent_ns }, check);
        team.barrier()
    }
}

impl Sampling {
    /// Returns the sampling of iterations that were not timed.
    fn of_load(iterations: u64, spent: Duration) -> Sampling {
        Sampling {
            samples: Vec::new(),
            tail: Vec::new(),
            summary: None,
            ending: None,
            iterations,
            untimed: 0,
            spent,
            batch: 1,
            one_stamp_each: false,
            precision: f64::INFINITY,
            counted: None,
        }
    }
}

/// The job around a session that repeats its first case as load.
pub(crate) trait Background {
    /// Takes the reason why the case cannot run. It is the same on every rank of the session.
    fn is_unsupported(&self, why: &Error);
    /// Returns whether a case has started. A session that has several repeats its first one only.
    fn has_started(&self) -> bool;
    /// Waits until all ranks of the job are ready. Called once, when the first iterations are done. Collective over the job.
    fn start(&self) -> Result<()>;
    /// Returns whether those that are measured are done.
    fn is_over(&self) -> Result<bool>;
    /// Takes what was run and how its verification ended. The check is the same on every rank of the session.
    fn ended(&self, work: Repeated, check: Check);
}

/// Iterations that were run as load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Repeated {
    /// Bytes that all ranks together sent.
    pub(crate) bytes: u64,
    /// Time of all rounds.
    pub(crate) spent_ns: u64,
}
