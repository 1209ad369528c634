//! Synchronisation: every epoch that is opened is closed, and what happens inside one is passed in.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::error::Result;

use crate::{Epoch, Window, ext::check};

/// Who else may hold a lock on the same target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Others that share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// No assertion: what users' programs pass.
const ASSERT: c_int = 0;

/// The synchronisation calls of a window towards one peer. A trait, so that tests can watch a probe in its place.
pub trait Epochs {
    /// Proof that an access epoch is open.
    type Epoch<'w>
    where
        Self: 'w;

    /// `MPI_Win_fence`: ends the epochs before it. Collective.
    fn fence(&self) -> Result<()>;
    /// A last fence, after which other synchronisation may be used (MPI 4.1, 12.5.1). Collective.
    fn fence_for_good(&self) -> Result<()>;
    /// Operations after a fence; the next fence ends their epoch.
    fn after_fence(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// `MPI_Win_start`, operations, `MPI_Win_complete`.
    fn start_complete(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// `MPI_Win_post`, whatever is done meanwhile, `MPI_Win_wait`: an exposure epoch.
    fn post_wait(&self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()>;
    /// `MPI_Win_lock`, operations, `MPI_Win_unlock`.
    fn lock_unlock(&self, kind: LockKind, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// `MPI_Win_lock_all`, operations, `MPI_Win_unlock_all`.
    fn lock_all_unlock_all(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Locks the peer until [`Epochs::release`], for operations that end with a flush.
    fn hold(&self) -> Result<()>;
    /// Unlocks what [`Epochs::hold`] locked; nothing otherwise.
    fn release(&self) -> Result<()>;
    /// Operations inside a held lock, then `MPI_Win_flush`: complete at the target.
    fn then_flush(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Operations inside a held lock, then `MPI_Win_flush_local`: complete at the origin only.
    fn then_flush_local(&self, issue: impl FnOnce(&Self::Epoch<'_>) -> Result<()>) -> Result<()>;
}

impl Epochs for Window {
    type Epoch<'w> = Epoch<'w>;

    #[inline(always)]
    fn fence(&self) -> Result<()> {
        // SAFETY: a live window.
        check("MPI_Win_fence", unsafe { ffi::MPI_Win_fence(ASSERT, self.raw) })
    }

    fn fence_for_good(&self) -> Result<()> {
        // SAFETY: a live window.
        check("MPI_Win_fence", unsafe { ffi::MPI_Win_fence(ffi::MPI_MODE_NOSUCCEED as c_int, self.raw) })
    }

    #[inline(always)]
    fn after_fence(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        self.fence()?;
        issue(&Epoch(self))
    }

    #[inline(always)]
    fn start_complete(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        // SAFETY: a live window and group.
        check("MPI_Win_start", unsafe { ffi::MPI_Win_start(self.partner, ASSERT, self.raw) })?;
        let issued = issue(&Epoch(self));
        // SAFETY: the epoch that was just opened.
        let closed = check("MPI_Win_complete", unsafe { ffi::MPI_Win_complete(self.raw) });
        issued.and(closed)
    }

    #[inline(always)]
    fn post_wait(&self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
        // SAFETY: a live window and group.
        check("MPI_Win_post", unsafe { ffi::MPI_Win_post(self.partner, ASSERT, self.raw) })?;
        meanwhile()?;
        // SAFETY: the epoch that was just opened.
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
        // SAFETY: a live window.
        check("MPI_Win_lock_all", unsafe { ffi::MPI_Win_lock_all(ASSERT, self.raw) })?;
        let issued = issue(&Epoch(self));
        // SAFETY: the epoch that was just opened.
        let closed = check("MPI_Win_unlock_all", unsafe { ffi::MPI_Win_unlock_all(self.raw) });
        issued.and(closed)
    }

    fn hold(&self) -> Result<()> {
        self.lock(LockKind::Shared)?;
        self.held.set(true);
        Ok(())
    }

    fn release(&self) -> Result<()> {
        if self.held.replace(false) { self.unlock() } else { Ok(()) }
    }

    #[inline(always)]
    fn then_flush(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert!(self.held.get());
        issue(&Epoch(self))?;
        // SAFETY: a live window, locked by `hold`.
        check("MPI_Win_flush", unsafe { ffi::MPI_Win_flush(self.peer, self.raw) })
    }

    #[inline(always)]
    fn then_flush_local(&self, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        debug_assert!(self.held.get());
        issue(&Epoch(self))?;
        // SAFETY: a live window, locked by `hold`.
        check("MPI_Win_flush_local", unsafe { ffi::MPI_Win_flush_local(self.peer, self.raw) })
    }
}

impl Window {
    #[inline(always)]
    fn lock(&self, kind: LockKind) -> Result<()> {
        let kind = match kind {
            LockKind::Shared => ffi::MPI_LOCK_SHARED as c_int,
            LockKind::Exclusive => ffi::MPI_LOCK_EXCLUSIVE as c_int,
        };
        // SAFETY: a live window.
        check("MPI_Win_lock", unsafe { ffi::MPI_Win_lock(kind, self.peer, ASSERT, self.raw) })
    }

    #[inline(always)]
    fn unlock(&self) -> Result<()> {
        // SAFETY: a live window, locked before.
        check("MPI_Win_unlock", unsafe { ffi::MPI_Win_unlock(self.peer, self.raw) })
    }
}
