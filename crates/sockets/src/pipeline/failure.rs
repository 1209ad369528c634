//! Errors of the processes of a pipeline, on their way to the coordinator.

use std::io;

use ombx_core::error::Error;
use serde::{Deserialize, Serialize};

use crate::control::process::Exit;

/// Exit code of a process that has reported its failure.
pub(super) const REPORTED: u8 = 77;

/// An error, and whether it may be the consequence of another.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) error: Error,
}

/// Position of a failure in a chain; the larger one explains the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Cause {
    /// The end of another process may have caused it: its connections break.
    Consequence,
    /// Original failure, which no other failure caused.
    Root,
}

impl Failure {
    /// Returns the failure of a broken connection.
    pub(super) fn broken(name: &str, what: &str, why: &io::Error) -> Failure {
        Failure { cause: Cause::Consequence, error: Error::fabric(format!("{name}: {what}: {why}")) }
    }

    /// Returns the failure of a member that ended. It is the root unless the member has reported another; threads always do.
    pub(super) fn exited(exit: &Exit) -> Failure {
        let code = exit.status.and_then(|status| status.code());
        let reported = exit.pid.is_none() || code == Some(REPORTED.into());
        let cause = if reported { Cause::Consequence } else { Cause::Root };
        Failure { cause, error: Error::fabric(exit.to_string()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { cause: Cause::Root, error }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

    use ombx_core::{codec, error::Kind};

    use super::*;

    #[test]
    fn a_failure_is_decoded_as_encoded() {
        let sent = Failure::from(Error::new(Kind::Storage, "disk full"));
        let received: Failure = codec::decode(&codec::encode(&sent)).unwrap();
        assert_eq!((received.cause, received.error.kind()), (Cause::Root, Kind::Storage));
        assert_eq!(received.error.to_string(), "disk full");
        let broken = Failure::broken("sender 1", "node 2", &io::ErrorKind::BrokenPipe.into());
        assert!(broken.cause < Cause::Root);
    }

    #[test]
    fn an_exit_is_the_cause_unless_the_process_reported_another() {
        let cause = |pid, code: i32| {
            let status = Some(ExitStatus::from_raw(code << 8));
            Failure::exited(&Exit { name: "node 1".into(), pid, status }).cause
        };
        assert_eq!(cause(Some(7), 1), Cause::Root);
        assert_eq!(cause(Some(7), REPORTED.into()), Cause::Consequence);
        assert_eq!(cause(None, 1), Cause::Consequence);
    }
}
