//! Synchronisation of one-sided operations, one type per way.

use ombx_core::{benchmark::Role, error::Result};
use ombx_mpi::{Epochs, LockKind};

/// A way to open and close the epochs of one-sided operations. All functions except `begin` and `end` are timed.
pub trait Synchronization: 'static {
    /// Legs of a latency iteration: 2 with an active target, which then accesses the origin; 1 with a passive target.
    const LEGS: u64;
    /// Whether the origin holds a lock on its target during all iterations.
    const HOLDS: bool = false;

    /// Issues the origin's operations in an epoch and completes them as this synchronisation does.
    fn access<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()>;

    /// Runs the target's side of the origin's epoch.
    fn expose<W: Epochs>(_: &W) -> Result<()> {
        Ok(())
    }

    /// Runs a latency iteration of the origin: its epoch and, if there are two legs, the target's.
    #[inline(always)]
    fn ping<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        Self::access(window, issue)?;
        Self::expose(window)
    }

    /// Runs the target's side of the same iteration.
    #[inline(always)]
    fn pong<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        Self::expose(window)?;
        if Self::LEGS == 2 { Self::access(window, issue) } else { Ok(()) }
    }

    /// Runs an iteration in which both ranks access each other at the same time, in both ranks' epochs.
    #[inline(always)]
    fn both<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        Self::access(window, issue)
    }

    /// Prepares the window before the iterations. Untimed.
    fn begin<W: Epochs>(window: &W, role: Role) -> Result<()> {
        if Self::HOLDS && role == Role::Active { window.hold() } else { Ok(()) }
    }

    /// Ends all epochs after the iterations. Untimed.
    fn end<W: Epochs>(window: &W) -> Result<()> {
        window.release()
    }
}

/// `MPI_Win_fence` on both ranks. The fence that ends one leg opens the next (MPI 4.1, 12.5.1).
pub enum Fence {}

impl Synchronization for Fence {
    const LEGS: u64 = 2;

    #[inline(always)]
    fn access<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        window.after_fence(issue)?;
        window.fence()
    }

    #[inline(always)]
    fn expose<W: Epochs>(window: &W) -> Result<()> {
        window.fence()?;
        window.fence()
    }

    #[inline(always)]
    fn ping<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        window.after_fence(issue)?;
        window.fence()?;
        window.fence()
    }

    #[inline(always)]
    fn pong<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        window.fence()?;
        window.after_fence(issue)?;
        window.fence()
    }

    fn end<W: Epochs>(window: &W) -> Result<()> {
        window.last_fence()
    }
}

/// `MPI_Win_start` and `MPI_Win_complete` at the origin, `MPI_Win_post` and `MPI_Win_wait` at the target (MPI 4.1, 12.5.2).
pub enum Pscw {}

impl Synchronization for Pscw {
    const LEGS: u64 = 2;

    #[inline(always)]
    fn access<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        window.start_complete(issue)
    }

    #[inline(always)]
    fn expose<W: Epochs>(window: &W) -> Result<()> {
        window.post_wait(|| Ok(()))
    }

    #[inline(always)]
    fn both<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
        window.post_wait(|| window.start_complete(issue))
    }
}

/// Declares ways with a passive target: whether the origin holds a lock during all iterations, and the epoch of each.
macro_rules! passive {
    ($( $( #[doc = $doc:literal] )+ $Type:ident: holds $holds:literal, $epoch:ident($($kind:path)?); )+) => {
        $(
            $( #[doc = $doc] )+
            pub enum $Type {}

            impl Synchronization for $Type {
                const LEGS: u64 = 1;
                const HOLDS: bool = $holds;

                #[inline(always)]
                fn access<W: Epochs>(window: &W, issue: impl FnOnce(&W::Epoch<'_>) -> Result<()>) -> Result<()> {
                    window.$epoch($($kind,)? issue)
                }
            }
        )+
    };
}

passive! {
    /// `MPI_Win_lock` (shared) and `MPI_Win_unlock` in each iteration (MPI 4.1, 12.5.3).
    Lock: holds false, lock_unlock(LockKind::Shared);
    /// `MPI_Win_lock` (exclusive) and `MPI_Win_unlock` in each iteration.
    LockExclusive: holds false, lock_unlock(LockKind::Exclusive);
    /// `MPI_Win_lock_all` and `MPI_Win_unlock_all` in each iteration.
    LockAll: holds false, lock_all_unlock_all();
    /// `MPI_Win_flush` in each iteration, in one lock: operations complete at the target (MPI 4.1, 12.5.4).
    Flush: holds true, then_flush();
    /// `MPI_Win_flush_local` in each iteration, in one lock: operations complete at the origin only.
    FlushLocal: holds true, then_flush_local();
}

/// Declares the parameter `sync`, and `by_sync!`, which maps its values to the types of the same names.
macro_rules! synchronizations {
    ($( #[doc = $help:literal] $Type:ident = $name:literal, )+) => {
        ombx_core::parameter! {
            /// Synchronisation of one-sided operations; pscw and fence are active-target, the others passive
            pub enum SyncKind: "sync", Always, default Pscw {
                $( #[doc = $help] $Type = $name, )+
            }
        }

        /// Runs a benchmark once per selected synchronisation.
        macro_rules! by_sync {
            ($session:expr, $kernel:ident < $op:ident, .., $mode:ident >) => {
                $session.split(|session, kind| match kind {
                    $($crate::sync::SyncKind::$Type => {
                        ombx_core::benchmark::cold::run_cached::<$kernel<$op, $crate::sync::$Type, $mode>>(session)
                    })+
                })
            };
        }
        pub(crate) use by_sync;
    };
}

synchronizations! {
    /// MPI_Win_post, start, complete and wait
    Pscw = "pscw",
    /// MPI_Win_fence
    Fence = "fence",
    /// MPI_Win_lock (shared) and MPI_Win_unlock around each access
    Lock = "lock",
    /// MPI_Win_lock (exclusive) and MPI_Win_unlock around each access
    LockExclusive = "lock_exclusive",
    /// MPI_Win_lock_all and MPI_Win_unlock_all around each access
    LockAll = "lock_all",
    /// MPI_Win_flush after each access, inside one lock
    Flush = "flush",
    /// MPI_Win_flush_local after each access, inside one lock
    FlushLocal = "flush_local",
}
