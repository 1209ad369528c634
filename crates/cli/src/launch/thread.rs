//! Threads of the launching process, and errors of processes and threads that cannot be started.

use std::{
    fmt::Display,
    io,
    thread::{Builder, JoinHandle},
};

use ombx_core::{
    error::{Error, Result},
    system::limits::start_error,
};

/// Starts a thread.
///
/// # Errors
/// The system allows no further thread.
pub(crate) fn spawn<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>> {
    Builder::new().name(name.into()).spawn(work).map_err(|e| cannot_start("a thread", &e))
}

/// Returns the error about something that cannot be started.
pub(crate) fn cannot_start(what: impl Display, error: &io::Error) -> Error {
    Error::fabric(format!("cannot start {what}: {}", start_error(error)))
}
