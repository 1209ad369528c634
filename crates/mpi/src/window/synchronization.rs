//! Synchronisation: functions that open an epoch, run the operations passed to them, and close it.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::error::Result;

use super::{
    epoch::Epoch,
    handle::{Held, Window},
};
use crate::sys::error::check;

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
