//! Standard output. A reader that closes the pipe early (ombx list | head) is no error.

use std::io::{self, Write};

use ombx_core::error::{Error, Result};

/// Prints a text and returns the exit code 0.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<u8> {
    is_closed(io::stdout().lock().write_all(text.as_ref())).map(|_| 0)
}

/// Returns whether printing failed because the reader closed the pipe. Other failures are errors.
pub(crate) fn is_closed(printed: io::Result<()>) -> Result<bool> {
    match printed {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(e) => Err(Error::storage(format!("standard output: {}", reason(&e)))),
        Ok(()) => Ok(false),
    }
}

/// Returns why a file cannot be written; a full disk is called so.
pub(crate) fn reason(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "your quota of the disk is used up".into(),
        _ => why.to_string(),
    }
}
