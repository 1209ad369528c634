//! The layer below every other module: constants, error handling, datatypes and message memory.

pub(crate) mod buffer;
pub(crate) mod datatype;
pub(crate) mod error;
pub(crate) mod session;

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, memory::Copies},
    error::{Error, Result},
};

use self::error::check;

/// Most requests of a rank. MPICH 4.0 has at most 262,144.
const MOST: u64 = 1 << 17;
/// Estimate of the memory in bytes of a request.
const BYTES: u64 = 1024;

/// Checks that there is memory for `each` requests for each copy of the buffers, and for `bytes` bytes of other data. Collective.
///
/// # Errors
/// There are too many requests, or there is not enough memory.
pub(crate) fn afford(cx: &Context<'_>, copies: Copies, each: u64, bytes: u64) -> Result<()> {
    let (count, requests) = (copies.count(), copies.count().saturating_mul(each));
    if count > 1 && requests > MOST {
        return Err(Error::unsupported(format!(
            "each of {count} copies of the buffers needs {each} persistent requests, together more than \
             {MOST}: choose larger --sizes, or a smaller --cache-size"
        )));
    }
    cx.afford(bytes.saturating_add(requests.saturating_mul(BYTES)))
}

/// Persistent requests, freed when they are dropped. An owner declares them as its first field: what they read and write, and their
/// datatypes and communicators, must be dropped later.
#[derive(Debug, Default)]
pub(crate) struct PersistentRequests(pub(crate) Vec<ffi::MPI_Request>);

impl Drop for PersistentRequests {
    fn drop(&mut self) {
        if error::may_free() {
            for request in &mut self.0 {
                // SAFETY: every request is inactive between calls, and only `drop` frees it.
                error::check_freed(c"MPI_Request_free", unsafe { ffi::MPI_Request_free(&raw mut *request) });
            }
        }
    }
}

/// Calls `slice`, then `tests` times `MPI_Test` and `slice`, and waits for a request.
///
/// The request is changed in place: a copy of it would be an instruction in every timed iteration.
///
/// # Safety
/// The request is active or null, and what it reads and writes exists until it has completed.
#[inline(always)]
pub(crate) unsafe fn overlap(
    request: &mut ffi::MPI_Request,
    tests: u32,
    mut slice: impl FnMut(),
) -> Result<()> {
    slice();
    for _ in 0..tests {
        let mut done = 0;
        // SAFETY: the caller guarantees it for the request. MPI makes a completed one null, for which the calls are legal.
        check("MPI_Test", unsafe { ffi::MPI_Test(request, &raw mut done, ffi::RSMPI_STATUS_IGNORE) })?;
        slice();
    }
    // SAFETY: as above.
    check("MPI_Wait", unsafe { ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE) })
}

unsafe extern "C" {
    #[link_name = "ombx_BYTE"]
    pub(crate) safe static BYTE: ffi::MPI_Datatype;
    #[link_name = "ombx_SIGNED_CHAR"]
    pub(crate) safe static SIGNED_CHAR: ffi::MPI_Datatype;
    #[link_name = "ombx_REPLACE"]
    pub(crate) safe static REPLACE: ffi::MPI_Op;
    #[link_name = "ombx_NO_OP"]
    pub(crate) safe static NO_OP: ffi::MPI_Op;
    #[link_name = "ombx_IN_PLACE"]
    pub(crate) safe static IN_PLACE: *mut c_void;
    #[link_name = "ombx_sizeof_comm"]
    safe static SIZEOF_COMM: c_int;
    #[link_name = "ombx_sizeof_status"]
    safe static SIZEOF_STATUS: c_int;
}

// MPICH's handles are integers, Open MPI's are pointers.
const _: () = assert!(
    cfg!(mpi_family = "other") || (size_of::<ffi::MPI_Comm>() == 4) == cfg!(mpi_family = "mpich"),
    "mpi-sys was built with another MPI than ombx-mpi: use one target directory per MPI"
);

/// Returns whether the C shim and mpi-sys were compiled with the same `mpi.h`, judged by the sizes of two types.
pub(crate) fn same_headers() -> bool {
    SIZEOF_COMM as usize == size_of::<ffi::MPI_Comm>()
        && SIZEOF_STATUS as usize == size_of::<ffi::MPI_Status>()
}
