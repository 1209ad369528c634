//! Completion of a request that was started, with other work in between.

use mpi::ffi;
use ombx_core::error::Result;

use super::error::check;

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
