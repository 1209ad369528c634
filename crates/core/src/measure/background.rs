//! A session that runs in the background: it repeats its first case as load until other ranks of the job are measured.

use ombx_record::{
    error::{Error, Result},
    result::Check,
};
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Repeated {
    /// Bytes that all ranks together sent.
    pub(crate) bytes: u64,
    /// Time of all rounds.
    pub(crate) spent_ns: u64,
}
