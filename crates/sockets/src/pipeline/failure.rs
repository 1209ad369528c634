//! Errors of the processes of a pipeline, on their way to the coordinator.

use std::io;

use ombx_core::error::{Error, Kind as ErrorKind};

use crate::control::{Kind, Message, process::Exit};

/// Exit code of a process that has reported its failure.
pub(super) const REPORTED: u8 = 77;

/// An error, and whether it may be the consequence of another.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) error: Error,
}

/// Position of a failure in a chain; the larger one explains the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// The end of another process may have caused it: its connections break.
    Consequence,
    /// Original failure, which no other failure caused.
    Root,
}

const KINDS: [ErrorKind; 5] =
    [ErrorKind::Usage, ErrorKind::Unsupported, ErrorKind::Payload, ErrorKind::Fabric, ErrorKind::Storage];

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

    pub(super) fn message(&self) -> Message {
        let code = self.error.kind().exit_code();
        Message::new(Kind::Failure).numbers([self.cause as u64, code.into()]).texts([self.error.to_string()])
    }

    /// Reads a failure; an unknown kind of error counts as one of the fabric.
    pub(super) fn of(message: &Message) -> Failure {
        let cause = if message.number(0) == 0 { Cause::Consequence } else { Cause::Root };
        let kind = KINDS.into_iter().find(|kind| u64::from(kind.exit_code()) == message.number(1));
        Failure { cause, error: Error::new(kind.unwrap_or(ErrorKind::Fabric), message.text(0)) }
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

    use super::*;

    #[test]
    fn a_failure_is_decoded_as_encoded() {
        for kind in KINDS {
            let sent = Failure::from(Error::new(kind, "disk full"));
            let received = Failure::of(&sent.message());
            assert_eq!(
                (received.cause, received.error.kind(), received.error.to_string()),
                (Cause::Root, kind, "disk full".into())
            );
        }
        let broken = Failure::broken("sender 1", "node 2", &io::ErrorKind::BrokenPipe.into());
        assert!(Failure::of(&broken.message()).cause < Cause::Root);
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
