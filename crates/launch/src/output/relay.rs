//! The pipe on which ranks send events to the launching process.
//!
//! Each event is a line of JSON, as in a result file: launchers pass on lines of text, and some add words of their own.

use std::{fs::File, io};

use ombx_record::error::{Error, Result};

/// Returns the error that the launching process no longer reads.
pub(crate) fn broken(why: &io::Error) -> Error {
    Error::fabric(format!("the process that started this job has ended: {why}"))
}

/// Returns the pipe to the launching process and redirects standard output to standard error. What a library prints would otherwise
/// end up inside a record.
pub(crate) fn claim_stdout() -> Result<File> {
    let claimed = rustix::io::dup(rustix::stdio::stdout()).and_then(|pipe| {
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(File::from(pipe))
    });
    claimed.map_err(|e| Error::fabric(format!("standard output: {e}")))
}
