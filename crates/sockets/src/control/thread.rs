//! Named threads that wait in the kernel for messages or exits.

use std::thread::{Builder, JoinHandle};

use ombx_core::{
    error::{Error, Result},
    system::limits::start_error,
};

/// Bytes of a thread's stack. A session has a thread for each rank.
const STACK: usize = 256 << 10;

/// Starts a thread with a small stack.
pub(crate) fn spawn<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>> {
    let started = Builder::new().name(name.into()).stack_size(STACK).spawn(work);
    started.map_err(|e| Error::fabric(format!("cannot start a thread: {}", start_error(&e))))
}
