//! Access epochs, and the one-sided calls, which exist only inside one.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{benchmark::payload::Slots, error::Result};

use crate::{
    sys::{datatype::MessageType, error::check},
    window::handle::{Held, Window},
};

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

/// The lock type of `MPI_Win_lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// `MPI_LOCK_SHARED`: other ranks may hold a shared lock on the same target.
    Shared,
    /// `MPI_LOCK_EXCLUSIVE`: no other rank may hold a lock on the same target.
    Exclusive,
}

/// No assertion, as in most programs.
const ASSERT: c_int = 0;

/// The synchronisation calls of a window towards one peer. It is a trait so that tests can replace the window by a probe.
pub trait Epochs {
    /// An open access epoch.
    type Epoch<'w>
    where
        Self: 'w;

    /// Calls `MPI_Win_fence`, which ends the epochs before it and opens the next. Collective.
    fn fence(&self) -> Result<()>;
    /// Calls `MPI_Win_fence` so that no epoch follows and other synchronisation may be used (MPI 4.1, 12.5.1). Collective.
    fn last_fence(&self) -> Result<()>;
    /// Calls `MPI_Win_fence` and issues operations. The next fence completes them.
    fn after_fence(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Issues operations between `MPI_Win_start` and `MPI_Win_complete`.
    fn start_complete(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Opens an exposure epoch with `MPI_Win_post`, calls `meanwhile`, and closes it with `MPI_Win_wait`.
    fn post_wait(&self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()>;
    /// Issues operations between `MPI_Win_lock` and `MPI_Win_unlock`.
    fn lock_unlock(&self, kind: LockKind, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Issues operations between `MPI_Win_lock_all` and `MPI_Win_unlock_all`.
    fn lock_all_unlock_all(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Locks the peer until [`Epochs::release`], as [`Epochs::then_flush`] and [`Epochs::then_flush_local`] need.
    fn hold(&self) -> Result<()>;
    /// Releases the locks that this rank holds.
    fn release(&self) -> Result<()>;
    /// Issues operations in a held lock and completes them at the target with `MPI_Win_flush`.
    fn then_flush(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Issues operations in a held lock and completes them at the origin only with `MPI_Win_flush_local`.
    fn then_flush_local(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
}

impl Epochs for Window {
    type Epoch<'w> = Epoch<'w>;

    #[inline(always)]
    fn fence(&self) -> Result<()> {
        // SAFETY: `self` owns the window until it is dropped.
        check("MPI_Win_fence", unsafe { ffi::MPI_Win_fence(ASSERT, self.raw) })
    }

    fn last_fence(&self) -> Result<()> {
        // SAFETY: `self` owns the window until it is dropped.
        check("MPI_Win_fence", unsafe { ffi::MPI_Win_fence(ffi::MPI_MODE_NOSUCCEED as c_int, self.raw) })
    }

    #[inline(always)]
    fn after_fence(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        self.fence()?;
        issue(&Epoch(self))
    }

    #[inline(always)]
    fn start_complete(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: `self` owns window and group until it is dropped.
        check("MPI_Win_start", unsafe { ffi::MPI_Win_start(self.peer_group, ASSERT, self.raw) })?;
        let issued = issue(&Epoch(self));
        // SAFETY: `MPI_Win_start` has opened this epoch above.
        let closed = check("MPI_Win_complete", unsafe { ffi::MPI_Win_complete(self.raw) });
        issued.and(closed)
    }

    #[inline(always)]
    fn post_wait(&self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
        // SAFETY: `self` owns window and group until it is dropped.
        check("MPI_Win_post", unsafe { ffi::MPI_Win_post(self.peer_group, ASSERT, self.raw) })?;
        meanwhile()?;
        // SAFETY: `MPI_Win_post` has opened this epoch above.
        check("MPI_Win_wait", unsafe { ffi::MPI_Win_wait(self.raw) })
    }

    #[inline(always)]
    fn lock_unlock(&self, kind: LockKind, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        self.lock(kind)?;
        let issued = issue(&Epoch(self));
        issued.and(self.unlock())
    }

    #[inline(always)]
    fn lock_all_unlock_all(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: `self` owns the window until it is dropped.
        check("MPI_Win_lock_all", unsafe { ffi::MPI_Win_lock_all(ASSERT, self.raw) })?;
        let issued = issue(&Epoch(self));
        // SAFETY: `MPI_Win_lock_all` has opened this epoch above.
        let closed = check("MPI_Win_unlock_all", unsafe { ffi::MPI_Win_unlock_all(self.raw) });
        issued.and(closed)
    }

    fn hold(&self) -> Result<()> {
        self.lock(LockKind::Shared)?;
        self.held.set(Held::Peer);
        Ok(())
    }

    fn release(&self) -> Result<()> {
        self.unlock_held()
    }

    #[inline(always)]
    fn then_flush(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert_eq!(self.held.get(), Held::Peer);
        issue(&Epoch(self))?;
        // SAFETY: `self` owns the window, and `hold` has locked the peer, which debug builds assert.
        check("MPI_Win_flush", unsafe { ffi::MPI_Win_flush(self.peer, self.raw) })
    }

    #[inline(always)]
    fn then_flush_local(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert_eq!(self.held.get(), Held::Peer);
        issue(&Epoch(self))?;
        // SAFETY: `self` owns the window, and `hold` has locked the peer, which debug builds assert.
        check("MPI_Win_flush_local", unsafe { ffi::MPI_Win_flush_local(self.peer, self.raw) })
    }
}

impl Window {
    /// Locks all ranks until [`Epochs::release`], as [`Window::then_flush_all`] and [`Window::then_flush_local_all`] need.
    pub fn hold_all(&self) -> Result<()> {
        // SAFETY: `self` owns the window until it is dropped.
        check("MPI_Win_lock_all", unsafe { ffi::MPI_Win_lock_all(ASSERT, self.raw) })?;
        self.held.set(Held::All);
        Ok(())
    }

    /// Issues operations on several ranks and completes them at their targets with `MPI_Win_flush_all`.
    #[inline(always)]
    pub fn then_flush_all(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert_eq!(self.held.get(), Held::All);
        issue(&Epoch(self))?;
        // SAFETY: `self` owns the window, and `hold_all` has locked all ranks, which debug builds assert.
        check("MPI_Win_flush_all", unsafe { ffi::MPI_Win_flush_all(self.raw) })
    }

    /// Issues operations on several ranks and completes them at the origin only with `MPI_Win_flush_local_all`.
    #[inline(always)]
    pub fn then_flush_local_all(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert_eq!(self.held.get(), Held::All);
        issue(&Epoch(self))?;
        // SAFETY: `self` owns the window, and `hold_all` has locked all ranks, which debug builds assert.
        check("MPI_Win_flush_local_all", unsafe { ffi::MPI_Win_flush_local_all(self.raw) })
    }

    /// Issues operations in the epoch that the last fence has opened, and completes them with `MPI_Win_fence`. Collective.
    #[inline(always)]
    pub fn then_fence(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        issue(&Epoch(self))?;
        self.fence()
    }

    #[inline(always)]
    fn lock(&self, kind: LockKind) -> Result<()> {
        let kind = match kind {
            LockKind::Shared => ffi::MPI_LOCK_SHARED as c_int,
            LockKind::Exclusive => ffi::MPI_LOCK_EXCLUSIVE as c_int,
        };
        // SAFETY: `self` owns the window until it is dropped.
        check("MPI_Win_lock", unsafe { ffi::MPI_Win_lock(kind, self.peer, ASSERT, self.raw) })
    }
}
