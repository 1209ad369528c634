//! Parts of a transfer that all links have: buffers, results of system calls, and errors.

use std::time::Duration;

use ombx_core::error::{Error, Result};
use rustix::io::Errno;

/// Result of one system call.
pub(super) enum Moved {
    Bytes(usize),
    Nothing,
}

#[inline(always)]
pub(super) fn moved(result: rustix::io::Result<usize>) -> Result<Moved> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN) => Ok(Moved::Nothing),
        Err(Errno::INTR) => Ok(Moved::Bytes(0)),
        Err(errno) => Err(failed(errno)),
    }
}

const PAGE: usize = 4096;

/// Bytes that start on a page boundary.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Returns a buffer whose pages the kernel has allocated.
    pub(crate) fn touched(len: u64) -> Buffer {
        let len = len as usize;
        let mut memory = vec![0; len + PAGE];
        // The kernel allocates a page at the first write.
        memory.fill(1);
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Buffer { memory, start, len }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

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
