//! Start of MPI as a session, and its end.

use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
    sync::atomic::{AtomicU8, Ordering},
};

use mpi::ffi;
use ombx_core::{
    benchmark::Threading,
    error::{Error, Result},
};

use super::optional::routine;

unsafe extern "C" {
    fn ombx_session_start(level: *const c_char, all: *mut ffi::MPI_Comm, call: *mut *const c_char) -> c_int;
    fn ombx_session_level(level: *mut c_char, length: c_int);
    safe fn ombx_session_end();
}

const NEVER: u8 = 0;
const OPEN: u8 = 1;
const ENDED: u8 = 2;

/// Whether this process has a session with a communicator of all ranks.
static STATE: AtomicU8 = AtomicU8::new(NEVER);

/// Returns whether the library has sessions.
pub(crate) fn exist() -> bool {
    routine(&[c"MPI_Session_init"]).is_some()
}

/// Returns whether a session is open. `MPI_Initialized` does not say so (MPI 4.0, 11.4.1).
pub(crate) fn is_open() -> bool {
    STATE.load(Ordering::Relaxed) == OPEN
}

/// Returns whether this process has had a session.
pub(crate) fn was_open() -> bool {
    STATE.load(Ordering::Relaxed) != NEVER
}

/// Names of the levels of thread support in the info of a session (MPI 4.1, 11.3.1).
const LEVELS: [(Threading, &CStr); 4] = [
    (Threading::Single, c"MPI_THREAD_SINGLE"),
    (Threading::Funneled, c"MPI_THREAD_FUNNELED"),
    (Threading::Serialized, c"MPI_THREAD_SERIALIZED"),
    (Threading::Multiple, c"MPI_THREAD_MULTIPLE"),
];

/// Returns the level of thread support that the open session grants, if it says so.
pub(crate) fn threading() -> Option<Threading> {
    let mut level = [0; 64];
    if !is_open() {
        return None;
    }
    // SAFETY: the buffer has the length that the call is given, which ends the text by a zero.
    let granted = unsafe {
        ombx_session_level(level.as_mut_ptr(), level.len() as c_int);
        CStr::from_ptr(level.as_ptr())
    };
    LEVELS.into_iter().find(|(_, name)| *name == granted).map(|(level, _)| level)
}

/// Starts a session and returns a communicator of all its ranks, which the caller owns.
///
/// # Errors
/// The library has no sessions, or a call fails.
pub(crate) fn start(threading: Threading) -> Result<ffi::MPI_Comm> {
    // SAFETY: this static of mpi-sys is never written.
    let (mut all, mut call) = (unsafe { ffi::RSMPI_COMM_NULL }, ptr::null());
    let level = LEVELS.into_iter().find(|(level, _)| *level == threading).map_or(c"", |(_, name)| name);
    // SAFETY: the text and both results outlive the call.
    let code = unsafe { ombx_session_start(level.as_ptr(), &raw mut all, &raw mut call) };
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
