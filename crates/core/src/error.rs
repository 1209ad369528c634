//! One small error: a kind that decides the exit code and a sentence that names the thing and the value.

use std::fmt;

/// Result of everything in ombx; one pointer wide, so that a hot loop returns it in a register.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in one sentence.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: String,
}

/// The kinds of failure; each has one exit code (see [`Kind::exit_code`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user asked for something that does not exist or does not fit.
    Usage,
    /// This case cannot run here (too few ranks, no such MPI feature, not enough memory): it is skipped with the reason.
    Unsupported,
    /// MPI, a launcher or a connection failed, or a rank died.
    Fabric,
    /// What arrived is not what was sent.
    Payload,
    /// Results could not be written or read.
    Storage,
}

impl Kind {
    /// The process exit code of a run that ends with this kind.
    pub const fn exit_code(self) -> u8 {
        match self {
            Kind::Usage => 2,
            Kind::Unsupported => 4,
            Kind::Payload => 5,
            Kind::Fabric => 6,
            Kind::Storage => 7,
        }
    }

    const ALL: [Kind; 5] = [Kind::Usage, Kind::Unsupported, Kind::Fabric, Kind::Payload, Kind::Storage];

    pub(crate) fn index(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_index(index: u8) -> Kind {
        Self::ALL.get(usize::from(index)).copied().unwrap_or(Kind::Fabric)
    }
}

impl Error {
    /// An error of a kind, with its sentence.
    #[cold]
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into() }))
    }

    /// A user's mistake: nothing is started.
    #[cold]
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(Kind::Usage, message)
    }

    /// Something that this machine, MPI or number of ranks cannot do.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, message)
    }

    /// A failure of MPI, a launcher or a connection.
    #[cold]
    pub fn fabric(message: impl Into<String>) -> Error {
        Error::new(Kind::Fabric, message)
    }

    /// A failure to write or read results.
    #[cold]
    pub fn storage(message: impl Into<String>) -> Error {
        Error::new(Kind::Storage, message)
    }

    /// The kind, which decides the exit code.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The same error with words before its sentence, for instance the benchmark it happened in.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_the_wire_between_ranks() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_index(kind.index()), kind);
        }
    }

    #[test]
    fn a_result_is_one_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
