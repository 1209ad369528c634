//! Something that went wrong in a process of a pipeline, on its way to the coordinator.

use std::io;

use ombx_core::error::{Error, Kind as Fault};

use super::note::{Kind, Note};

/// What went wrong, and whether it is a cause: when a process dies, the others only see a connection break.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) error: Error,
}

/// Of two failures the one that explains more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// Another's end may have caused it.
    Consequence,
    /// It explains itself.
    Root,
}

const FAULTS: [Fault; 5] = [Fault::Usage, Fault::Unsupported, Fault::Payload, Fault::Fabric, Fault::Storage];

impl Failure {
    /// A connection or a neighbour is gone.
    pub(super) fn broken(who: &str, what: &str, why: &io::Error) -> Failure {
        Failure { cause: Cause::Consequence, error: Error::fabric(format!("{who}: {what}: {why}")) }
    }

    /// A process ended that should not have.
    pub(super) fn lost(who: &str, how: &str) -> Failure {
        Failure { cause: Cause::Root, error: Error::fabric(format!("{who} {how}")) }
    }

    pub(super) fn note(&self) -> Note {
        let fault = self.error.kind().exit_code();
        Note::new(Kind::Failure).numbers([self.cause as u64, fault.into()]).words([self.error.to_string()])
    }

    pub(super) fn of(note: &Note) -> Failure {
        let cause = if note.number(0) == 0 { Cause::Consequence } else { Cause::Root };
        let fault = FAULTS.into_iter().find(|fault| u64::from(fault.exit_code()) == note.number(1));
        Failure { cause, error: Error::new(fault.unwrap_or(Fault::Fabric), note.word(0)) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { cause: Cause::Root, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_the_way() {
        for fault in FAULTS {
            let sent = Failure::from(Error::new(fault, "no room"));
            let heard = Failure::of(&sent.note());
            assert_eq!(
                (heard.cause, heard.error.kind(), heard.error.to_string()),
                (Cause::Root, fault, "no room".into())
            );
        }
        let broken = Failure::broken("sender 1", "node 2", &io::ErrorKind::BrokenPipe.into());
        assert!(Failure::of(&broken.note()).cause < Cause::Root);
    }
}
