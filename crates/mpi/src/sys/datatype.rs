//! Message lengths as MPI-3 calls take them.

use std::ffi::c_int;

use ombx_core::error::{Error, Result};

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
