//! How calls count bytes: by an `int`, as all MPIs can, or by an `MPI_Count`, as those of MPI 4 can.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::error::{Error, Result};

use crate::ext::BYTE;

/// What an `int` counts at the most.
pub(crate) const INT: u64 = c_int::MAX as u64;

/// The two-sided calls of one way to count. Places must be valid for `bytes` until the call, or its request, has completed.
pub trait Counting: 'static {
    /// A number of bytes.
    type Count: Copy + std::fmt::Debug;
    /// Bytes of a message at the most.
    const MOST: u64;

    /// As calls want it; why not, if they cannot.
    fn count(bytes: u64) -> Result<Self::Count>;
    /// `MPI_Send`.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn send(from: *const c_void, bytes: Self::Count, to: End) -> c_int;
    /// `MPI_Recv`.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn receive(into: *mut c_void, bytes: Self::Count, from: End) -> c_int;
    /// `MPI_Isend`.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn start_send(
        from: *const c_void,
        bytes: Self::Count,
        to: End,
        request: *mut ffi::MPI_Request,
    ) -> c_int;
    /// `MPI_Irecv`.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn start_receive(
        into: *mut c_void,
        bytes: Self::Count,
        from: End,
        request: *mut ffi::MPI_Request,
    ) -> c_int;
}

/// The other end of a message.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub(crate) peer: c_int,
    pub(crate) tag: c_int,
    pub(crate) comm: ffi::MPI_Comm,
}

/// Counts by `int`.
#[derive(Debug)]
pub enum Int {}

macro_rules! counting {
    ($way:ty, $count:ty, $most:expr, $send:ident, $receive:ident, $start_send:ident, $start_receive:ident) => {
        impl Counting for $way {
            type Count = $count;
            const MOST: u64 = $most;

            fn count(bytes: u64) -> Result<$count> {
                <$count>::try_from(bytes).map_err(|_| too_long(bytes))
            }

            #[inline(always)]
            unsafe fn send(from: *const c_void, bytes: $count, to: End) -> c_int {
                // SAFETY: the caller's.
                unsafe { ffi::$send(from, bytes, BYTE, to.peer, to.tag, to.comm) }
            }

            #[inline(always)]
            unsafe fn receive(into: *mut c_void, bytes: $count, from: End) -> c_int {
                let ignored = no_status();
                // SAFETY: the caller's.
                unsafe { ffi::$receive(into, bytes, BYTE, from.peer, from.tag, from.comm, ignored) }
            }

            #[inline(always)]
            unsafe fn start_send(
                from: *const c_void,
                bytes: $count,
                to: End,
                request: *mut ffi::MPI_Request,
            ) -> c_int {
                // SAFETY: the caller's.
                unsafe { ffi::$start_send(from, bytes, BYTE, to.peer, to.tag, to.comm, request) }
            }

            #[inline(always)]
            unsafe fn start_receive(
                into: *mut c_void,
                bytes: $count,
                from: End,
                request: *mut ffi::MPI_Request,
            ) -> c_int {
                // SAFETY: the caller's.
                unsafe { ffi::$start_receive(into, bytes, BYTE, from.peer, from.tag, from.comm, request) }
            }
        }
    };
}

#[inline(always)]
fn no_status() -> *mut ffi::MPI_Status {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

counting!(Int, c_int, INT, MPI_Send, MPI_Recv, MPI_Isend, MPI_Irecv);

/// Counts by `MPI_Count`.
#[cfg(mpi_has = "MPI_Send_c")]
#[derive(Debug)]
pub enum Large {}

#[cfg(mpi_has = "MPI_Send_c")]
counting!(Large, ffi::MPI_Count, i64::MAX as u64, MPI_Send_c, MPI_Recv_c, MPI_Isend_c, MPI_Irecv_c);

/// This library has none that counts further.
#[cfg(not(mpi_has = "MPI_Send_c"))]
pub type Large = Int;

fn too_long(bytes: u64) -> Error {
    Error::unsupported(format!(
        "messages of {bytes} bytes need the large-count calls of MPI 4, which {} has not",
        crate::library::library_name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_int_ends_below_2_gib() {
        assert_eq!(Int::count(INT).unwrap(), c_int::MAX);
        assert!(Int::count(INT + 1).is_err());
        assert!(Large::count(Large::MOST).is_ok() && Large::MOST >= INT);
    }
}
