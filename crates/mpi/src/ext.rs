//! What the `mpi` crate lacks: constants and error handlers from the shim, and the check of a return code.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::atomic::{AtomicBool, Ordering},
};

use mpi::ffi;
use ombx_core::error::{Error, Result};

unsafe extern "C" {
    #[link_name = "ombx_BYTE"]
    pub(crate) safe static BYTE: ffi::MPI_Datatype;
    #[link_name = "ombx_REPLACE"]
    pub(crate) safe static REPLACE: ffi::MPI_Op;
    #[link_name = "ombx_IN_PLACE"]
    pub(crate) safe static IN_PLACE: *mut c_void;
    #[link_name = "ombx_sizeof_comm"]
    safe static SIZEOF_COMM: c_int;
    #[link_name = "ombx_sizeof_status"]
    safe static SIZEOF_STATUS: c_int;
    fn ombx_name_task(task: *const c_char);
    fn ombx_abort(code: c_int);
    fn ombx_die(call: *const c_char, code: c_int);
    fn ombx_guard_comm(comm: ffi::MPI_Comm) -> c_int;
    fn ombx_guard_win(win: ffi::MPI_Win) -> c_int;
}

// MPICH's handles are integers, Open MPI's are pointers.
const _: () = assert!(
    cfg!(mpi_family = "other") || (size_of::<ffi::MPI_Comm>() == 4) == cfg!(mpi_family = "mpich"),
    "mpi-sys was built against another MPI than ombx-mpi: use one target directory for each MPI"
);

/// Whether the shim and mpi-sys saw the same `mpi.h`.
pub(crate) fn same_headers() -> bool {
    SIZEOF_COMM as usize == size_of::<ffi::MPI_Comm>()
        && SIZEOF_STATUS as usize == size_of::<ffi::MPI_Status>()
}

/// Turns a return code into a result; on a guarded communicator or window the handler has ended the job before.
#[inline(always)]
pub(crate) fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(failed(call, code)) }
}

/// Whether a call has failed here: the job is ending.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Whether handles may be given back. Much of that is collective: a rank that ends the job, by an error or a panic, would wait in it
/// for ranks that do not come.
pub(crate) fn may_free() -> bool {
    !FAILED.load(Ordering::Relaxed) && !std::thread::panicking()
}

/// Checks a call that gives a handle back, where nobody takes an error: it ends the job.
pub(crate) fn freed(call: &'static CStr, code: c_int) {
    if code != ffi::MPI_SUCCESS as c_int {
        // SAFETY: ends with a zero; MPI is started and not finished as long as there are handles.
        unsafe { ombx_die(call.as_ptr(), code) };
    }
}

#[cold]
#[inline(never)]
fn failed(call: &'static str, code: c_int) -> Error {
    FAILED.store(true, Ordering::Relaxed);
    let mut text = vec![0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the buffer is as long as MPI asks for, and one zero longer.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    let words = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default();
    Error::fabric(format!("{call}: {}", words.replace('\n', " ")))
}

/// Names what runs now, for the error handlers.
pub(crate) fn name_task(task: &str) {
    let plain: Vec<u8> = task.bytes().filter(|b| *b != 0).chain([0]).collect();
    // SAFETY: ends with a zero; the shim copies it.
    unsafe { ombx_name_task(plain.as_ptr().cast()) };
}

/// Ends every rank of the job; MPI is started and not finished.
pub(crate) fn abort(code: u8) {
    // SAFETY: between MPI_Init and MPI_Finalize, as callers check; it does not return.
    unsafe { ombx_abort(c_int::from(code)) };
}

/// Makes errors on a communicator end the job with a sentence.
pub(crate) fn guard_comm(comm: ffi::MPI_Comm) -> Result<()> {
    // SAFETY: a live communicator.
    check("MPI_Comm_set_errhandler", unsafe { ombx_guard_comm(comm) })
}

/// Makes errors on a window end the job with a sentence.
pub(crate) fn guard_win(win: ffi::MPI_Win) -> Result<()> {
    // SAFETY: a live window.
    check("MPI_Win_set_errhandler", unsafe { ombx_guard_win(win) })
}

/// The widest unsigned integer of which `bytes` is a multiple, and its width: reductions in it are exact, with wrapping.
pub(crate) fn element(bytes: u64) -> (ffi::MPI_Datatype, u64) {
    let width = element_width(bytes);
    // SAFETY: constants of the library.
    let kind = unsafe {
        match width {
            8 => ffi::RSMPI_UINT64_T,
            4 => ffi::RSMPI_UINT32_T,
            2 => ffi::RSMPI_UINT16_T,
            _ => ffi::RSMPI_UINT8_T,
        }
    };
    (kind, width)
}

/// The width of that integer.
pub(crate) fn element_width(bytes: u64) -> u64 {
    [8, 4, 2].into_iter().find(|width| bytes.is_multiple_of(*width)).unwrap_or(1)
}

/// A length as MPI-3 counts: an `int`. Inlined, because it stands in timed loops.
#[inline(always)]
pub(crate) fn count(bytes: u64) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| uncountable(bytes))
}

#[cold]
#[inline(never)]
fn uncountable(bytes: u64) -> Error {
    Error::unsupported(format!(
        "messages of {bytes} bytes need large-count calls; this build counts up to 2 GiB"
    ))
}
