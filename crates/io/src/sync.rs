//! What follows the writes of an iteration, as types.

use ombx_core::error::Result;
use ombx_mpi::file::File;

/// What follows the writes of an iteration.
pub(crate) trait Completion: 'static {
    fn complete(file: &File) -> Result<()>;
}

/// `MPI_File_sync`.
pub(crate) enum Synced {}

/// Nothing.
pub(crate) enum Unsynced {}

impl Completion for Synced {
    #[inline(always)]
    fn complete(file: &File) -> Result<()> {
        file.sync()
    }
}

impl Completion for Unsynced {
    #[inline(always)]
    fn complete(_: &File) -> Result<()> {
        Ok(())
    }
}
