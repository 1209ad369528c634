//! What can go wrong in a task, as one sentence for the person at the terminal.

use std::{io, path::PathBuf};

/// Why a task stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{program} cannot be run: {source}")]
    Run { program: String, source: io::Error },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{program} gave output that cannot be read: {source}")]
    Output { program: &'static str, source: serde_json::Error },
    #[error("`{command}` failed: {detail}")]
    Command { command: String, detail: String },
    #[error("{0}")]
    Missing(String),
    #[error("{0}; nothing was installed")]
    NotInstalled(String),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Hosts(String),
    #[error(transparent)]
    Ombx(#[from] ombx_core::error::Error),
}

impl Failure {
    /// The exit code: of ombx where ombx has one for it.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Hosts(_) => 6,
            Self::Ombx(error) => error.kind().exit_code(),
            _ => 1,
        }
    }

    /// What a file operation on `path` turns into.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// The result of everything in xtask.
pub(crate) type Result<T> = std::result::Result<T, Failure>;
