//! Count arguments: `int` in all MPI libraries, `MPI_Count` in the large-count calls of MPI 4.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::error::{Error, Result};

use crate::{
    runtime::library::library_name,
    sys::{BYTE, session::LargeCalls},
};

/// The largest count of an `int`.
const INT_MAX: u64 = c_int::MAX as u64;

/// The two-sided calls of MPI with one type of count.
///
/// # Safety
/// This applies to the unsafe functions: the address is valid for `count` elements of the endpoint's datatype until the call or its
/// request has completed, and communicator and datatype of the endpoint are valid.
pub trait Counting: 'static {
    /// The type of count arguments.
    type Count: Copy + std::fmt::Debug;
    /// Maximum number of elements of a message.
    const MAX_ELEMENTS: u64;

    /// Converts a number of elements.
    ///
    /// # Errors
    /// The number does not fit.
    fn count(elements: u64) -> Result<Self::Count>;
    /// Converts a count to `int`, or to the largest `int` if it does not fit, for loops that do not repeat such messages.
    fn as_int(count: Self::Count) -> c_int;
    /// `MPI_Send`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn send(from: *const c_void, count: Self::Count, to: Endpoint) -> c_int;
    /// `MPI_Recv`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn receive(into: *mut c_void, count: Self::Count, from: Endpoint) -> c_int;
    /// `MPI_Isend`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn start_send(
        from: *const c_void,
        count: Self::Count,
        to: Endpoint,
        request: *mut ffi::MPI_Request,
    ) -> c_int;
    /// `MPI_Irecv`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn start_receive(
        into: *mut c_void,
        count: Self::Count,
        from: Endpoint,
        request: *mut ffi::MPI_Request,
    ) -> c_int;
}

/// Rank, tag and communicator of the other end of a message, and the type of what is sent.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    pub(super) peer: c_int,
    /// Source that receives name: the peer, or any rank.
    source: c_int,
    pub(super) tag: c_int,
    pub(super) comm: ffi::MPI_Comm,
    /// [`BYTE`], or a committed datatype. A static of C would be read from memory again for each message: one instruction more than
    /// a C loop needs.
    pub(super) datatype: ffi::MPI_Datatype,
    /// Calls of [`Large`].
    large: &'static LargeCalls,
}

impl Endpoint {
    /// The other end of messages of bytes.
    pub(crate) fn of_bytes(peer: c_int, tag: c_int, comm: ffi::MPI_Comm) -> Endpoint {
        Endpoint { peer, source: peer, tag, comm, datatype: BYTE, large: LargeCalls::get() }
    }

    /// Returns the endpoint with another datatype.
    #[must_use]
    pub(super) fn of_type(self, datatype: ffi::MPI_Datatype) -> Endpoint {
        Endpoint { datatype, ..self }
    }

    /// Returns the endpoint with another source of receives.
    #[must_use]
    pub(crate) fn receiving_from(self, source: c_int) -> Endpoint {
        Endpoint { source, ..self }
    }
}

/// Counts are `int`.
#[derive(Debug)]
pub enum Int {}

impl Counting for Int {
    type Count = c_int;
    const MAX_ELEMENTS: u64 = INT_MAX;

    fn count(elements: u64) -> Result<c_int> {
        c_int::try_from(elements).map_err(|_| too_long(elements))
    }

    fn as_int(count: c_int) -> c_int {
        count
    }

    #[inline(always)]
    unsafe fn send(from: *const c_void, count: c_int, to: Endpoint) -> c_int {
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { ffi::MPI_Send(from, count, to.datatype, to.peer, to.tag, to.comm) }
    }

    #[inline(always)]
    unsafe fn receive(into: *mut c_void, count: c_int, from: Endpoint) -> c_int {
        let ignored = no_status();
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { ffi::MPI_Recv(into, count, from.datatype, from.source, from.tag, from.comm, ignored) }
    }

    #[inline(always)]
    unsafe fn start_send(
        from: *const c_void,
        count: c_int,
        to: Endpoint,
        request: *mut ffi::MPI_Request,
    ) -> c_int {
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { ffi::MPI_Isend(from, count, to.datatype, to.peer, to.tag, to.comm, request) }
    }

    #[inline(always)]
    unsafe fn start_receive(
        into: *mut c_void,
        count: c_int,
        from: Endpoint,
        request: *mut ffi::MPI_Request,
    ) -> c_int {
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { ffi::MPI_Irecv(into, count, from.datatype, from.source, from.tag, from.comm, request) }
    }
}

/// Counts are `MPI_Count`, in a library that has calls for them.
#[derive(Debug)]
pub enum Large {}

impl Counting for Large {
    type Count = ffi::MPI_Count;
    const MAX_ELEMENTS: u64 = i64::MAX as u64;

    fn count(elements: u64) -> Result<ffi::MPI_Count> {
        if elements > INT_MAX && !LargeCalls::get().is_native {
            return Err(too_long(elements));
        }
        ffi::MPI_Count::try_from(elements).map_err(|_| too_long(elements))
    }

    fn as_int(count: ffi::MPI_Count) -> c_int {
        c_int::try_from(count).unwrap_or(c_int::MAX)
    }

    #[inline(always)]
    unsafe fn send(from: *const c_void, count: ffi::MPI_Count, to: Endpoint) -> c_int {
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { (to.large.send)(from, count, to.datatype, to.peer, to.tag, to.comm) }
    }

    #[inline(always)]
    unsafe fn receive(into: *mut c_void, count: ffi::MPI_Count, from: Endpoint) -> c_int {
        let ignored = no_status();
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { (from.large.receive)(into, count, from.datatype, from.source, from.tag, from.comm, ignored) }
    }

    #[inline(always)]
    unsafe fn start_send(
        from: *const c_void,
        count: ffi::MPI_Count,
        to: Endpoint,
        request: *mut ffi::MPI_Request,
    ) -> c_int {
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe { (to.large.start_send)(from, count, to.datatype, to.peer, to.tag, to.comm, request) }
    }

    #[inline(always)]
    unsafe fn start_receive(
        into: *mut c_void,
        count: ffi::MPI_Count,
        from: Endpoint,
        request: *mut ffi::MPI_Request,
    ) -> c_int {
        // SAFETY: the caller fulfils the contract of the trait.
        unsafe {
            (from.large.start_receive)(into, count, from.datatype, from.source, from.tag, from.comm, request)
        }
    }
}

#[inline(always)]
fn no_status() -> *mut ffi::MPI_Status {
    // SAFETY: this static of mpi-sys is never written.
    unsafe { ffi::RSMPI_STATUS_IGNORE }
}

fn too_long(elements: u64) -> Error {
    Error::unsupported(format!(
        "messages of {elements} elements need the large-count calls of MPI 4, which {} lacks: choose a \
         longer --type, such as double",
        library_name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_above_int_max_need_large_counts() {
        assert_eq!(Int::count(INT_MAX).unwrap(), c_int::MAX);
        assert!(Int::count(INT_MAX + 1).is_err());
        assert_eq!(Large::count(INT_MAX).unwrap(), INT_MAX as ffi::MPI_Count);
        assert_eq!(Large::count(INT_MAX + 1).is_ok(), LargeCalls::get().is_native);
    }
}
