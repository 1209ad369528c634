//! The error type: a kind, which decides the exit code, and a message.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};

use serde::{Deserialize, Serialize};

/// Result with [`Error`]. It is one pointer wide, so that timed loops return it in a register.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of ombx: what is wrong, then what to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Error(Box<Inner>);

#[derive(Debug, Serialize, Deserialize)]
struct Inner {
    kind: Kind,
    message: String,
}

/// Kind of an error; see [`Kind::exit_code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Wrong arguments.
    Usage,
    /// The case cannot run here: too few ranks, too little memory, or a missing feature of MPI. It is skipped.
    Unsupported,
    /// MPI, a launcher or a connection failed, or a rank died.
    Fabric,
    /// Data arrived wrong.
    Payload,
    /// Results could not be written or read.
    Storage,
}

impl Kind {
    /// Returns the exit code of a process that ends with this kind of error.
    pub const fn exit_code(self) -> u8 {
        match self {
            Kind::Usage => Exit::Usage,
            Kind::Unsupported => Exit::Incomplete,
            Kind::Payload => Exit::WrongData,
            Kind::Fabric => Exit::Fabric,
            Kind::Storage => Exit::Storage,
        }
        .code()
    }
}

impl Error {
    /// Returns an error of a kind with its message.
    #[cold]
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into() }))
    }

    /// Returns an error about wrong arguments. No rank has started.
    #[cold]
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(Kind::Usage, message)
    }

    /// Returns an error about something that this host, MPI or number of ranks does not support.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, message)
    }

    /// Returns an error of MPI, a launcher or a connection.
    #[cold]
    pub fn fabric(message: impl Into<String>) -> Error {
        Error::new(Kind::Fabric, message)
    }

    /// Returns an error of writing or reading results.
    #[cold]
    pub fn storage(message: impl Into<String>) -> Error {
        Error::new(Kind::Storage, message)
    }

    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the error with a prefix, for instance the benchmark in which it happened.
    #[must_use]
    pub fn within(mut self, what: impl fmt::Display) -> Error {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

/// How a command ended. `docs/reference/exit-codes.md` says which command ends how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything ran and was verified, and nothing stands against it.
    Success = 0,
    /// The number of ranks is one that OMB refuses.
    Refused = 1,
    /// A mistake in the command line: nothing was started.
    Usage = 2,
    /// A case became worse.
    Regression = 3,
    /// A row failed or was skipped.
    Incomplete = 4,
    /// Data arrived wrong.
    WrongData = 5,
    /// A launcher, MPI or a connection failed, or a rank died.
    Fabric = 6,
    /// Results could not be written or read.
    Storage = 7,
    /// The measurements do not decide.
    Undecided = 8,
    /// Something is slow, or misses a limit.
    Slow = 9,
    /// There is no verdict.
    NoVerdict = 10,
    /// The measurement was skipped, because other processes use the CPUs.
    Busy = 11,
    /// A row does not have the precision that was asked for.
    Imprecise = 12,
    /// A host counted errors of its devices or protocols, or caused those of others.
    Errors = 13,
}

impl Exit {
    /// All ways to end, in the order of their codes.
    pub const ALL: [Exit; 14] = [
        Exit::Success,
        Exit::Refused,
        Exit::Usage,
        Exit::Regression,
        Exit::Incomplete,
        Exit::WrongData,
        Exit::Fabric,
        Exit::Storage,
        Exit::Undecided,
        Exit::Slow,
        Exit::NoVerdict,
        Exit::Busy,
        Exit::Imprecise,
        Exit::Errors,
    ];
    /// A signal adds its number to this code.
    pub const SIGNAL: u8 = 128;

    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the way to end that has this code; `None` if no command of ombx ends so by itself.
    pub fn from_code(code: i32) -> Option<Exit> {
        Exit::ALL.into_iter().find(|exit| i32::from(exit.code()) == code)
    }

    /// Returns the exit code of a process. One that a signal has ended has the code that shells show.
    pub fn code_of_process(status: ExitStatus) -> u8 {
        let by_signal = || i32::from(Exit::SIGNAL) + status.signal().unwrap_or(0);
        u8::try_from(status.code().unwrap_or_else(by_signal)).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use crate::error::*;

    #[test]
    fn a_result_is_one_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
