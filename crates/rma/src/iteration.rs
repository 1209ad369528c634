//! The operations of one iteration on a window.

use std::marker::PhantomData;

use ombx_core::error::Result;
use ombx_mpi::{Epoch, Window};

use crate::operation::Operation;

/// A window and the number of operations `O` that an iteration issues on it.
pub struct Iteration<O> {
    pub(crate) window: Window,
    depth: u32,
    operation: PhantomData<O>,
}

impl<O: Operation> Iteration<O> {
    pub(crate) fn new(window: Window, depth: u32) -> Iteration<O> {
        Iteration { window, depth, operation: PhantomData }
    }

    /// Issues one operation, without a loop.
    #[inline(always)]
    pub(crate) fn issue_one(epoch: &Epoch<'_>) -> Result<()> {
        O::issue(epoch, 0)?;
        O::issued(epoch)
    }

    /// Issues one operation per slot.
    #[inline(always)]
    pub(crate) fn issue_all(&self, epoch: &Epoch<'_>) -> Result<()> {
        for slot in 0..self.depth {
            O::issue(epoch, slot)?;
        }
        O::issued(epoch)
    }
}
