//! Epochs: one-sided calls exist only inside one, and every epoch that is opened is closed.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::error::Result;

use crate::{
    ext::{BYTE, check},
    window::Window,
};

/// Proof that an access epoch towards the window's peer is open.
pub struct Epoch<'w>(&'w Window);

/// No assertion: what users' programs pass.
const ASSERT: c_int = 0;

impl Epoch<'_> {
    #[inline(always)]
    fn here(&self, slot: u32) -> *mut c_void {
        self.0.local.start().wrapping_add(self.0.slots.offset(slot)).cast()
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
            ffi::MPI_Put(self.here(slot), count, BYTE, peer, self.there(slot), count, BYTE, raw)
        })
    }

    /// `MPI_Get` of the peer's slot into a local one.
    #[inline(always)]
    pub fn get(&self, slot: u32) -> Result<()> {
        let Window { raw, peer, count, .. } = *self.0;
        // SAFETY: as in `put`.
        check("MPI_Get", unsafe {
            ffi::MPI_Get(self.here(slot), count, BYTE, peer, self.there(slot), count, BYTE, raw)
        })
    }
}

impl Window {
    /// `MPI_Win_fence`: ends the epochs before it. Collective.
    #[inline(always)]
    pub fn fence(&self) -> Result<()> {
        // SAFETY: a live window.
        check("MPI_Win_fence", unsafe { ffi::MPI_Win_fence(ASSERT, self.raw) })
    }

    /// A last fence, after which other synchronisation may be used (MPI 4.1, 12.5.1). Collective.
    pub fn fence_for_good(&self) -> Result<()> {
        // SAFETY: a live window.
        check("MPI_Win_fence", unsafe { ffi::MPI_Win_fence(ffi::MPI_MODE_NOSUCCEED as c_int, self.raw) })
    }

    /// Operations after a fence; the next fence ends their epoch.
    #[inline(always)]
    pub fn after_fence(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        self.fence()?;
        issue(&Epoch(self))
    }

    /// `MPI_Win_start`, operations, `MPI_Win_complete`.
    #[inline(always)]
    pub fn start_complete(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: a live window and group.
        check("MPI_Win_start", unsafe { ffi::MPI_Win_start(self.partner, ASSERT, self.raw) })?;
        let issued = issue(&Epoch(self));
        // SAFETY: the epoch that was just opened.
        let closed = check("MPI_Win_complete", unsafe { ffi::MPI_Win_complete(self.raw) });
        issued.and(closed)
    }

    /// `MPI_Win_post`, `MPI_Win_wait`: an exposure epoch.
    #[inline(always)]
    pub fn post_wait(&self) -> Result<()> {
        // SAFETY: a live window and group.
        check("MPI_Win_post", unsafe { ffi::MPI_Win_post(self.partner, ASSERT, self.raw) })?;
        // SAFETY: the epoch that was just opened.
        check("MPI_Win_wait", unsafe { ffi::MPI_Win_wait(self.raw) })
    }

    /// `MPI_Win_lock` (shared), operations, `MPI_Win_unlock`.
    #[inline(always)]
    pub fn lock_unlock(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        self.lock()?;
        let issued = issue(&Epoch(self));
        issued.and(self.unlock())
    }

    /// `MPI_Win_lock_all`, operations, `MPI_Win_unlock_all`.
    #[inline(always)]
    pub fn lock_all_unlock_all(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: a live window.
        check("MPI_Win_lock_all", unsafe { ffi::MPI_Win_lock_all(ASSERT, self.raw) })?;
        let issued = issue(&Epoch(self));
        // SAFETY: the epoch that was just opened.
        let closed = check("MPI_Win_unlock_all", unsafe { ffi::MPI_Win_unlock_all(self.raw) });
        issued.and(closed)
    }

    /// Locks the peer until [`Window::release`], for operations that end with a flush.
    pub fn hold(&self) -> Result<()> {
        self.lock()?;
        self.held.set(true);
        Ok(())
    }

    /// Unlocks what [`Window::hold`] locked; nothing otherwise.
    pub fn release(&self) -> Result<()> {
        if self.held.replace(false) { self.unlock() } else { Ok(()) }
    }

    /// Operations inside a held lock, then `MPI_Win_flush`: complete at the target.
    #[inline(always)]
    pub fn then_flush(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert!(self.held.get());
        issue(&Epoch(self))?;
        // SAFETY: a live window, locked by `hold`.
        check("MPI_Win_flush", unsafe { ffi::MPI_Win_flush(self.peer, self.raw) })
    }

    /// Operations inside a held lock, then `MPI_Win_flush_local`: complete at the origin only.
    #[inline(always)]
    pub fn then_flush_local(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert!(self.held.get());
        issue(&Epoch(self))?;
        // SAFETY: a live window, locked by `hold`.
        check("MPI_Win_flush_local", unsafe { ffi::MPI_Win_flush_local(self.peer, self.raw) })
    }

    #[inline(always)]
    fn lock(&self) -> Result<()> {
        let kind = ffi::MPI_LOCK_SHARED as c_int;
        // SAFETY: a live window.
        check("MPI_Win_lock", unsafe { ffi::MPI_Win_lock(kind, self.peer, ASSERT, self.raw) })
    }

    #[inline(always)]
    fn unlock(&self) -> Result<()> {
        // SAFETY: a live window, locked before.
        check("MPI_Win_unlock", unsafe { ffi::MPI_Win_unlock(self.peer, self.raw) })
    }
}
