//! Start of MPI as a session, and its end.

use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
    sync::atomic::{AtomicU8, Ordering},
};

use mpi::ffi;
use ombx_core::error::{Error, Result};

unsafe extern "C" {
    fn ombx_session_start(multiple: c_int, all: *mut ffi::MPI_Comm, call: *mut *const c_char) -> c_int;
    safe fn ombx_session_is_multiple() -> c_int;
    safe fn ombx_session_end();
}

const NEVER: u8 = 0;
const OPEN: u8 = 1;
const ENDED: u8 = 2;

/// Whether this process has a session with a communicator of all ranks.
static STATE: AtomicU8 = AtomicU8::new(NEVER);

/// Returns whether a session is open. `MPI_Initialized` does not say so (MPI 4.0, 11.4.1).
pub(crate) fn is_open() -> bool {
    STATE.load(Ordering::Relaxed) == OPEN
}

/// Returns whether this process has had a session.
pub(crate) fn was_open() -> bool {
    STATE.load(Ordering::Relaxed) != NEVER
}

/// Returns whether the open session grants `MPI_THREAD_MULTIPLE`.
pub(crate) fn is_multiple() -> bool {
    is_open() && ombx_session_is_multiple() != 0
}

/// Starts a session and returns a communicator of all its ranks, which the caller owns.
///
/// # Errors
/// The library has no sessions, or a call fails.
pub(crate) fn start(multiple: bool) -> Result<ffi::MPI_Comm> {
    // SAFETY: this static of mpi-sys is never written.
    let (mut all, mut call) = (unsafe { ffi::RSMPI_COMM_NULL }, ptr::null());
    // SAFETY: both results outlive the call.
    let code = unsafe { ombx_session_start(multiple.into(), &raw mut all, &raw mut call) };
    if code != ffi::MPI_SUCCESS as c_int {
        // SAFETY: the shim stores the address of a string constant before it makes any call.
        let call = unsafe { CStr::from_ptr(call) }.to_string_lossy();
        // MPI_Error_string may not work before initialisation.
        return Err(Error::fabric(format!("{call}: error {code}")));
    }
    STATE.store(OPEN, Ordering::Relaxed);
    Ok(all)
}

/// Ends the session. All handles are freed before.
pub(crate) fn end() {
    STATE.store(ENDED, Ordering::Relaxed);
    ombx_session_end();
}
