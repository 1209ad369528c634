//! Datatypes of reductions, and message lengths as MPI-3 calls take them.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::error::{Error, Result};

/// Returns the widest unsigned integer type whose width divides `bytes`, and that width. Reductions in it are exact: they wrap.
pub(crate) fn element(bytes: u64) -> (ffi::MPI_Datatype, u64) {
    let width = element_width(bytes);
    // SAFETY: these statics of mpi-sys are never written.
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

/// Returns the largest of 8, 4, 2 and 1 that divides `bytes`.
pub(crate) fn element_width(bytes: u64) -> u64 {
    [8, 4, 2].into_iter().find(|width| bytes.is_multiple_of(*width)).unwrap_or(1)
}

/// Converts a length to the `int` of MPI-3 calls. It is inlined because timed loops call it.
#[inline(always)]
pub(crate) fn count(bytes: u64) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| uncountable(bytes))
}

#[cold]
#[inline(never)]
fn uncountable(bytes: u64) -> Error {
    Error::unsupported(format!(
        "messages of {bytes} bytes need large-count calls; this benchmark supports less than 2 GiB"
    ))
}
