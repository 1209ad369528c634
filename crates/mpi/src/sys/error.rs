//! Return codes and error handlers: every MPI error becomes a `Result` or ends the job with one sentence.

use std::{
    ffi::{CStr, c_char, c_int},
    sync::atomic::{AtomicBool, Ordering},
};

use mpi::ffi;
use ombx_core::error::{Error, Result};

unsafe extern "C" {
    fn ombx_name_task(task: *const c_char);
    fn ombx_abort(code: c_int);
    fn ombx_die(call: *const c_char, code: c_int);
    fn ombx_watch_crashes();
    fn ombx_name_rest(line: *const c_char);
    fn ombx_guard_comm(comm: ffi::MPI_Comm) -> c_int;
    fn ombx_guard_win(win: ffi::MPI_Win) -> c_int;
}

/// Turns a return code into a result. On a guarded communicator or window the error handler ends the job before this runs.
#[inline(always)]
pub(crate) fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(failed(call, code)) }
}

/// Set when a call has failed on this rank, so that the job is ending.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Returns whether handles may be freed. Freeing is often collective: a rank that ends the job after an error or a panic
/// would wait for ranks that never call it.
pub(crate) fn may_free() -> bool {
    !FAILED.load(Ordering::Relaxed) && !std::thread::panicking()
}

/// Checks the return code of a call that frees a handle. It is for `drop`, which returns no error: a failure ends the job.
pub(crate) fn check_freed(call: &'static CStr, code: c_int) {
    if code != ffi::MPI_SUCCESS as c_int {
        // SAFETY: a `CStr` ends with a zero. A handle existed until now, so MPI is initialised and not finalised.
        unsafe { ombx_die(call.as_ptr(), code) };
    }
}

#[cold]
#[inline(never)]
fn failed(call: &'static str, code: c_int) -> Error {
    FAILED.store(true, Ordering::Relaxed);
    Error::fabric(format!("{call}: {}", text(code)))
}

/// Turns the return code of a call that a library may refuse into a result: the case then cannot run. The job continues.
pub(crate) fn accept(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int {
        Ok(())
    } else {
        Err(Error::unsupported(format!("the library refuses it in {call}: {}", text(code))))
    }
}

/// Calls a function while errors of a communicator are return codes. Outside of it they end the job.
pub(crate) fn returning<T>(comm: ffi::MPI_Comm, call: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: the caller passes a valid communicator, and the handler is a static of mpi-sys that is never written.
    check("MPI_Comm_set_errhandler", unsafe {
        ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN)
    })?;
    let result = call();
    guard_comm(comm)?;
    result
}

/// Returns the library's description of an error on one line.
pub(crate) fn text(code: c_int) -> String {
    let mut text = vec![0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: MPI writes at most MPI_MAX_ERROR_STRING bytes; the buffer has one more, which stays zero.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let words = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default();
    words.replace('\n', " ")
}

/// Sets the line that is printed if this process fails from now on: what is then not measured.
pub(crate) fn name_rest(line: &str) {
    let plain: Vec<u8> = line.bytes().filter(|b| *b != 0).chain([0]).collect();
    // SAFETY: `plain` ends with its only zero, and the shim copies the text before it returns.
    unsafe { ombx_name_rest(plain.as_ptr().cast()) };
}

/// Names the current task for the messages of the error handlers.
pub(crate) fn name_task(task: &str) {
    let plain: Vec<u8> = task.bytes().filter(|b| *b != 0).chain([0]).collect();
    // SAFETY: `plain` ends with its only zero, and the shim copies the text before it returns.
    unsafe { ombx_name_task(plain.as_ptr().cast()) };
}

/// Ends every rank of the job. The caller checks that MPI is initialised and not finalised.
pub(crate) fn abort(code: u8) {
    // SAFETY: MPI_Abort is legal between MPI_Init and MPI_Finalize, which the caller has checked; it does not return.
    unsafe { ombx_abort(c_int::from(code)) };
}

/// Lets a crash of this rank print one sentence before it ends the process.
pub(crate) fn watch_crashes() {
    // SAFETY: the caller has initialised MPI and set the communicator of all ranks, which the shim reads.
    unsafe { ombx_watch_crashes() };
}

/// Installs the error handler that ends the job with a sentence on a communicator.
pub(crate) fn guard_comm(comm: ffi::MPI_Comm) -> Result<()> {
    // SAFETY: every caller passes a communicator that it has just created or that MPI predefines.
    check("MPI_Comm_set_errhandler", unsafe { ombx_guard_comm(comm) })
}

/// Installs the error handler that ends the job with a sentence on a window.
pub(crate) fn guard_win(win: ffi::MPI_Win) -> Result<()> {
    // SAFETY: the only caller passes a window that it has just created.
    check("MPI_Win_set_errhandler", unsafe { ombx_guard_win(win) })
}
