//! Errors of connections that carry payload.

use std::time::Duration;

use ombx_core::error::Error;
use rustix::io::Errno;

/// A transfer that makes no progress for this time has failed.
pub(crate) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the error of a failed transfer.
#[cold]
pub(crate) fn failed(errno: Errno) -> Error {
    match errno {
        Errno::AGAIN => {
            Error::fabric(format!("a connection made no progress for {} s", TRANSFER_TIMEOUT.as_secs()))
        }
        Errno::CONNRESET | Errno::PIPE | Errno::CONNREFUSED => closed(),
        other => Error::fabric(format!("a connection failed: {other}")),
    }
}

/// Returns the error of a connection that the other rank closed.
#[cold]
pub(crate) fn closed() -> Error {
    Error::fabric("the other rank closed the connection")
}
