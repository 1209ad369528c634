//! Failures of a task, each one sentence for the person at the terminal, and exit codes.

use std::{io, path::PathBuf, process::ExitCode};

/// Reason why a task stopped.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A program could not be started.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Name or path of the program.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    File {
        /// File that cannot be read or written.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A program printed something other than the expected JSON.
    #[error("cannot read the output of {program}: {source}")]
    Output {
        /// Command line of the program.
        program: &'static str,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// A command ended with an error.
    #[error("`{command}` failed: {detail}")]
    Command {
        /// The command line.
        command: String,
        /// Exit status and last message.
        detail: String,
    },
    /// A prerequisite or a result is missing.
    #[error("{0}")]
    Missing(String),
    /// Packages are missing and may not be installed.
    #[error("{0}; nothing was installed")]
    NotInstalled(String),
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// A library of ombx failed, with its exit code.
    #[error("{0}")]
    Ombx(String, u8),
    /// A host of the test bed failed.
    #[error("{0}")]
    Hosts(String),
}

impl Failure {
    /// Returns the exit code that ombx has for such a failure, otherwise 1.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Ombx(_, code) => *code,
            Self::Hosts(_) => 6,
            _ => 1,
        }
    }

    /// Returns a conversion of errors of the file at `path`, for `map_err`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// Result of a task.
pub type Result<T> = std::result::Result<T, Failure>;

/// Prints the failure of a task, if any, and returns the exit code of the process.
pub fn exit_code(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|failure| {
        eprintln!("xtask: {failure}");
        ExitCode::from(failure.code())
    })
}

/// Returns the exit code of a task that finds faults.
pub fn failed_if(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
