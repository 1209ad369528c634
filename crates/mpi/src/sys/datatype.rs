//! Datatypes of reductions, and message lengths as MPI-3 calls take them.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::error::{Error, Result};

use super::error::check;

/// Elements that a check of sums adds at most. Libraries add more than these in the same way.
const MOST_ADDED: u64 = 1024;

/// Returns the widest unsigned integer type whose width divides `bytes`, and that width. See [`check_sums`] for overflows.
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

/// Refuses messages whose sums cannot be verified, because the library does not add their elements modulo 2^8 or 2^16.
///
/// The MPI standard does not say what a sum is that overflows. Sums of 4 and 8 bytes wrap in all known libraries. Open MPI 4.1 adds
/// vectors of shorter elements with saturation on CPUs that have AVX.
///
/// # Errors
/// [`Error::unsupported`] if a sum does not wrap.
pub fn check_sums(bytes: u64) -> Result<()> {
    let (datatype, width) = element(bytes);
    if width >= 4 {
        return Ok(());
    }
    let count = (bytes / width).min(MOST_ADDED);
    let largest = vec![u8::MAX; (count * width) as usize];
    let mut sums = largest.clone();
    // SAFETY: both buffers have `count` elements of the datatype, and the statics of mpi-sys are never written.
    check("MPI_Reduce_local", unsafe {
        let (from, to) = (largest.as_ptr().cast(), sums.as_mut_ptr().cast());
        ffi::MPI_Reduce_local(from, to, count as c_int, datatype, ffi::RSMPI_SUM)
    })?;
    // The sum of two largest integers has all bits but the lowest one.
    let wrapped: &[u8] = if width == 1 { &[0xfe] } else { &0xfffe_u16.to_ne_bytes() };
    match sums.chunks(width as usize).all(|sum| sum == wrapped) {
        true => Ok(()),
        false => Err(Error::unsupported(
            "this MPI library adds integers of 1 and 2 bytes with saturation, so that sums cannot be verified: \
             choose sizes that are multiples of 4",
        )),
    }
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
