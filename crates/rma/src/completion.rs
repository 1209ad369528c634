//! The call that completes accesses to several ranks: a flush of all targets, or a fence.

use ombx_core::error::Result;
use ombx_mpi::{Epoch, Epochs, Window};

ombx_core::parameter! {
    /// Call that completes accesses to several ranks
    pub enum Completion: "completion", IfChosen, default Remote {
        /// MPI_Win_flush_all: at the targets
        Remote = "remote",
        /// MPI_Win_flush_local_all: at the origin only
        Local = "local",
        /// MPI_Win_fence on all ranks, as in IMB-EXT
        Fence = "fence",
    }
}

/// The synchronisation of an iteration.
pub trait Completes: 'static {
    /// Prepares the window before the iterations. Untimed.
    fn begin(window: &Window) -> Result<()> {
        window.hold_all()
    }
    /// Issues accesses and completes them.
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()>;
    /// Ends the epochs after the iterations. Untimed.
    fn end(window: &Window) -> Result<()> {
        window.release()
    }
}

/// `MPI_Win_flush_all`.
pub enum Remote {}

impl Completes for Remote {
    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_flush_all(issue)
    }
}

/// `MPI_Win_flush_local_all`.
pub enum Local {}

impl Completes for Local {
    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_flush_local_all(issue)
    }
}

/// `MPI_Win_fence`, which also opens the epoch of the next iteration (MPI 4.1, 12.5.1).
pub enum Fence {}

impl Completes for Fence {
    fn begin(window: &Window) -> Result<()> {
        window.fence()
    }

    #[inline(always)]
    fn after(window: &Window, issue: impl FnOnce(&Epoch<'_>) -> Result<()>) -> Result<()> {
        window.then_fence(issue)
    }

    fn end(window: &Window) -> Result<()> {
        window.last_fence()
    }
}
