//! Access epochs, and the one-sided calls, which exist only inside one.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{benchmark::payload::Slots, error::Result};

use super::handle::Window;
use crate::sys::{derived::MessageType, error::check};

/// An open access epoch towards the window's peer. [`Epochs`](crate::Epochs) opens and closes it.
///
/// Each call takes a slot: its part of the local buffer and the same part of the peer's exposed memory. The synchronisation
/// that closes the epoch completes the operations.
pub struct Epoch<'w>(pub(crate) &'w Window);

/// Local buffer of the data that the origin sends or gets.
const ORIGIN: usize = 0;
/// Local buffer of the values that atomic operations fetch.
const RESULT: usize = 1;
/// Local buffer of the values that compare-and-swap compares with.
const COMPARE: usize = 2;

impl Epoch<'_> {
    #[inline(always)]
    fn local(&self, local: usize, slot: u32) -> *mut c_void {
        debug_assert!(slot < self.0.local_slots);
        self.0.local[local].wrapping_add(self.0.slots.offset(slot)).cast()
    }

    #[inline(always)]
    fn local_at(&self, offset: usize) -> *mut c_void {
        let Window { slots, local_slots, .. } = *self.0;
        debug_assert!(offset as u64 + slots.bytes <= Slots { count: local_slots, ..slots }.total());
        self.0.local[ORIGIN].wrapping_add(offset).cast()
    }

    #[inline(always)]
    fn remote_at(&self, offset: usize) -> ffi::MPI_Aint {
        debug_assert!(offset as u64 + self.0.slots.bytes <= self.0.slots.total());
        self.0.remote + offset as ffi::MPI_Aint
    }

    #[inline(always)]
    fn remote(&self, slot: u32) -> ffi::MPI_Aint {
        debug_assert!(slot < self.0.slots.count);
        self.0.remote + self.0.slots.offset(slot) as ffi::MPI_Aint
    }

    /// Calls `MPI_Put` towards the peer.
    #[inline(always)]
    pub fn put(&self, slot: u32) -> Result<()> {
        let offset = self.0.slots.offset(slot);
        self.put_to(self.0.peer, offset, offset)
    }

    /// Calls `MPI_Put` from the slot at an offset of the local buffer into the slot at an offset of one of the window's targets.
    #[inline(always)]
    pub fn put_to(&self, target: c_int, from: usize, to: usize) -> Result<()> {
        debug_assert!(target == self.0.peer || self.0.targets.contains(&target));
        let Window { raw, message: MessageType { raw: kind, count: n, .. }, .. } = *self.0;
        // SAFETY: callers pass offsets of slots and one of the window's targets, which debug builds assert. So the slots lie inside
        // the local buffer and the target's memory, which live until the window is freed outside every epoch.
        check("MPI_Put", unsafe {
            let (local, remote) = (self.local_at(from), self.remote_at(to));
            ffi::MPI_Put(local, n, kind, target, remote, n, kind, raw)
        })
    }

    /// Calls `MPI_Get` from the peer.
    #[inline(always)]
    pub fn get(&self, slot: u32) -> Result<()> {
        let offset = self.0.slots.offset(slot);
        self.get_from(self.0.peer, offset, offset)
    }

    /// Calls `MPI_Get` from the slot at an offset of one of the window's targets into the slot at an offset of the local buffer.
    #[inline(always)]
    pub fn get_from(&self, target: c_int, from: usize, into: usize) -> Result<()> {
        debug_assert!(target == self.0.peer || self.0.targets.contains(&target));
        let Window { raw, message: MessageType { raw: kind, count: n, .. }, .. } = *self.0;
        // SAFETY: as in `put_to`.
        check("MPI_Get", unsafe {
            let (local, remote) = (self.local_at(into), self.remote_at(from));
            ffi::MPI_Get(local, n, kind, target, remote, n, kind, raw)
        })
    }

    /// Calls `MPI_Accumulate` on all elements of a slot.
    #[inline(always)]
    pub fn accumulate(&self, slot: u32) -> Result<()> {
        self.accumulate_to(self.0.peer, slot)
    }

    /// Calls `MPI_Accumulate` on all elements of a slot of one of the window's targets.
    #[inline(always)]
    pub fn accumulate_to(&self, target: c_int, slot: u32) -> Result<()> {
        debug_assert!(target == self.0.peer || self.0.targets.contains(&target));
        let Window { raw, message: MessageType { raw: kind, count: n, .. }, op, .. } = *self.0;
        // SAFETY: as in `put_to`.
        check("MPI_Accumulate", unsafe {
            let (from, to) = (self.local(ORIGIN, slot), self.remote(slot));
            ffi::MPI_Accumulate(from, n, kind, target, to, n, kind, op, raw)
        })
    }

    /// Calls `MPI_Get_accumulate` on all elements of a slot. The result buffer gets the peer's previous values.
    #[inline(always)]
    pub fn get_accumulate(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, message: MessageType { raw: kind, count: n, .. }, op, .. } = *self.0;
        let (from, result, to) = (self.local(ORIGIN, slot), self.local(RESULT, slot), self.remote(slot));
        // SAFETY: as in `put`. The result address is null if the window has no result buffer, and MPI rejects that.
        check("MPI_Get_accumulate", unsafe {
            ffi::MPI_Get_accumulate(from, n, kind, result, n, kind, peer, to, n, kind, op, raw)
        })
    }

    /// Calls `MPI_Fetch_and_op` on the first element of a slot. The result buffer gets the peer's previous value.
    #[inline(always)]
    pub fn fetch_and_op(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, message: MessageType { raw: kind, .. }, op, .. } = *self.0;
        let (from, result, to) = (self.local(ORIGIN, slot), self.local(RESULT, slot), self.remote(slot));
        // SAFETY: as in `get_accumulate`.
        check("MPI_Fetch_and_op", unsafe { ffi::MPI_Fetch_and_op(from, result, kind, peer, to, op, raw) })
    }

    /// Calls `MPI_Compare_and_swap` on the first element of a slot. The result buffer gets the peer's previous value.
    #[inline(always)]
    pub fn compare_and_swap(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, message: MessageType { raw: kind, .. }, .. } = *self.0;
        let (from, compare, result) =
            (self.local(ORIGIN, slot), self.local(COMPARE, slot), self.local(RESULT, slot));
        // SAFETY: as in `get_accumulate`, for the compare buffer too.
        check("MPI_Compare_and_swap", unsafe {
            ffi::MPI_Compare_and_swap(from, compare, result, kind, peer, self.remote(slot), raw)
        })
    }

    #[inline(always)]
    fn request(&self, slot: u32) -> *mut ffi::MPI_Request {
        // SAFETY: `Window` is not `Sync`, so one thread uses the requests. The caller uses the pointer in one MPI call, during
        // which no other reference to the requests exists.
        unsafe { (&mut (*self.0.requests.get()))[slot as usize..].as_mut_ptr() }
    }

    /// Calls `MPI_Rput`. [`Epoch::wait_all`] completes it at the origin.
    #[inline(always)]
    pub fn rput(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, message: MessageType { raw: kind, count: n, .. }, .. } = *self.0;
        // SAFETY: as in `put`. The window owns the request.
        check("MPI_Rput", unsafe {
            let (from, to) = (self.local(ORIGIN, slot), self.remote(slot));
            ffi::MPI_Rput(from, n, kind, peer, to, n, kind, raw, self.request(slot))
        })
    }

    /// Calls `MPI_Rget`. [`Epoch::wait_all`] completes it.
    #[inline(always)]
    pub fn rget(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, message: MessageType { raw: kind, count: n, .. }, .. } = *self.0;
        // SAFETY: as in `rput`.
        check("MPI_Rget", unsafe {
            let (into, from) = (self.local(ORIGIN, slot), self.remote(slot));
            ffi::MPI_Rget(into, n, kind, peer, from, n, kind, raw, self.request(slot))
        })
    }

    /// Calls `MPI_Waitall` on the requests of all slots.
    #[inline(always)]
    pub fn wait_all(&self) -> Result<()> {
        // SAFETY: there is one request per slot. Each is null or was started on memory that the window owns.
        check("MPI_Waitall", unsafe {
            ffi::MPI_Waitall(self.0.slots.count as c_int, self.request(0), ffi::RSMPI_STATUSES_IGNORE)
        })
    }
}
