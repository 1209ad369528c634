//! The number of persistent requests that a rank can have.

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, memory::Copies},
    error::{Error, Result},
};

use crate::sys::error::check;

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
            "each of {count} copies of the buffers needs {each} persistent requests, together more than {MOST}: choose larger --sizes, or \
             a smaller --cache-size"
        )));
    }
    cx.afford(bytes.saturating_add(requests.saturating_mul(BYTES)))
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
