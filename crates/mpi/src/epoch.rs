//! Access epochs: one-sided calls exist only inside one.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::error::Result;

use crate::{
    ext::{BYTE, REPLACE, check},
    window::Window,
};

/// Proof that an access epoch towards the window's peer is open.
pub struct Epoch<'w>(pub(crate) &'w Window);

/// How an accumulating operation combines elements, which are unsigned integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// Sum, wrapping.
    Sum,
    /// What is sent replaces what was there: an atomic put.
    Replace,
}

impl Reduction {
    #[inline(always)]
    fn op(self) -> ffi::MPI_Op {
        // SAFETY: constants of the library.
        unsafe {
            match self {
                Reduction::Sum => ffi::RSMPI_SUM,
                Reduction::Replace => REPLACE,
            }
        }
    }
}

/// The local buffers: what the origin sends or gets, what atomics return, what they compare with.
const ORIGIN: usize = 0;
const RESULT: usize = 1;
const COMPARE: usize = 2;

impl Epoch<'_> {
    #[inline(always)]
    fn here(&self, local: usize, slot: u32) -> *mut c_void {
        self.0.local[local].wrapping_add(self.0.slots.offset(slot)).cast()
    }

    #[inline(always)]
    fn there(&self, slot: u32) -> ffi::MPI_Aint {
        self.0.remote + self.0.slots.offset(slot) as ffi::MPI_Aint
    }

    /// `MPI_Put` of a local slot into the peer's.
    #[inline(always)]
    pub fn put(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, count, .. } = *self.0;
        // SAFETY: both memories hold the slot and live until the window is freed, after every epoch.
        check("MPI_Put", unsafe {
            ffi::MPI_Put(self.here(ORIGIN, slot), count, BYTE, peer, self.there(slot), count, BYTE, raw)
        })
    }

    /// `MPI_Get` of the peer's slot into a local one.
    #[inline(always)]
    pub fn get(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, count, .. } = *self.0;
        // SAFETY: as in `put`.
        check("MPI_Get", unsafe {
            ffi::MPI_Get(self.here(ORIGIN, slot), count, BYTE, peer, self.there(slot), count, BYTE, raw)
        })
    }

    /// `MPI_Accumulate` of a local slot into the peer's.
    #[inline(always)]
    pub fn accumulate(&self, slot: u32, how: Reduction) -> Result<()> {
        let Window { raw, peer, element: (kind, n), .. } = *self.0;
        // SAFETY: as in `put`.
        check("MPI_Accumulate", unsafe {
            let (from, to) = (self.here(ORIGIN, slot), self.there(slot));
            ffi::MPI_Accumulate(from, n, kind, peer, to, n, kind, how.op(), raw)
        })
    }

    /// `MPI_Get_accumulate`: also brings what stood there before into the result buffer.
    #[inline(always)]
    pub fn get_accumulate(&self, slot: u32, how: Reduction) -> Result<()> {
        let Window { raw, peer, element: (kind, n), .. } = *self.0;
        let (from, result, to) = (self.here(ORIGIN, slot), self.here(RESULT, slot), self.there(slot));
        // SAFETY: as in `put`; the window was opened with a result buffer, else the address is null and MPI refuses it.
        check("MPI_Get_accumulate", unsafe {
            ffi::MPI_Get_accumulate(from, n, kind, result, n, kind, peer, to, n, kind, how.op(), raw)
        })
    }

    /// `MPI_Fetch_and_op` on the first element of a slot.
    #[inline(always)]
    pub fn fetch_and_op(&self, slot: u32, how: Reduction) -> Result<()> {
        let Window { raw, peer, element: (kind, _), .. } = *self.0;
        let (from, result, to) = (self.here(ORIGIN, slot), self.here(RESULT, slot), self.there(slot));
        // SAFETY: as in `get_accumulate`.
        check("MPI_Fetch_and_op", unsafe {
            ffi::MPI_Fetch_and_op(from, result, kind, peer, to, how.op(), raw)
        })
    }

    /// `MPI_Compare_and_swap` on the first element of a slot.
    #[inline(always)]
    pub fn compare_and_swap(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, element: (kind, _), .. } = *self.0;
        let (from, compare, result) =
            (self.here(ORIGIN, slot), self.here(COMPARE, slot), self.here(RESULT, slot));
        // SAFETY: as in `get_accumulate`, with a buffer to compare with.
        check("MPI_Compare_and_swap", unsafe {
            ffi::MPI_Compare_and_swap(from, compare, result, kind, peer, self.there(slot), raw)
        })
    }

    #[inline(always)]
    fn request(&self, slot: u32) -> *mut ffi::MPI_Request {
        // SAFETY: one epoch at a time and one thread use the requests; the pointer is used before any other is made.
        unsafe { (&mut (*self.0.requests.get()))[slot as usize..].as_mut_ptr() }
    }

    /// `MPI_Rput` of a local slot; completed locally by [`Epoch::wait_all`].
    #[inline(always)]
    pub fn rput(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, count, .. } = *self.0;
        // SAFETY: as in `put`; the request lives in the window.
        check("MPI_Rput", unsafe {
            let (from, to) = (self.here(ORIGIN, slot), self.there(slot));
            ffi::MPI_Rput(from, count, BYTE, peer, to, count, BYTE, raw, self.request(slot))
        })
    }

    /// `MPI_Rget` into a local slot; complete after [`Epoch::wait_all`].
    #[inline(always)]
    pub fn rget(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, count, .. } = *self.0;
        // SAFETY: as in `rput`.
        check("MPI_Rget", unsafe {
            let (into, from) = (self.here(ORIGIN, slot), self.there(slot));
            ffi::MPI_Rget(into, count, BYTE, peer, from, count, BYTE, raw, self.request(slot))
        })
    }

    /// `MPI_Waitall` on every request of the window.
    #[inline(always)]
    pub fn wait_all(&self) -> Result<()> {
        // SAFETY: null or started on memory of the window.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(self.0.slots.count as c_int, self.request(0), ffi::RSMPI_STATUSES_IGNORE)
        })
    }
}
