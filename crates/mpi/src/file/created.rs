//! What every access to files begins with: buffers for the blocks of a rank, and a new file.

use std::{ffi::c_int, path::Path};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::{Error, Result},
};

use super::named::{Files, Named, check_directory};
use crate::Buffer;

/// A file that was created and is open, and buffers for its blocks.
pub(super) struct Created {
    /// Bytes of a block.
    pub(super) count: c_int,
    pub(super) outgoing: Buffer,
    pub(super) incoming: Buffer,
    pub(super) named: Named,
    pub(super) raw: ffi::MPI_File,
}

impl Created {
    /// Creates a file in a directory and opens it on all ranks, or one on each. Collective.
    ///
    /// # Errors
    /// The file cannot be created, blocks are too long, or the memory is not available.
    pub(super) fn of(cx: &Context<'_>, directory: &Path, files: Files, slots: Slots) -> Result<Created> {
        cx.afford(slots.total().saturating_mul(2))?;
        let parts = check_directory(directory).and_then(|()| {
            let count = c_int::try_from(slots.bytes);
            let count =
                count.map_err(|_| Error::unsupported("blocks of 2 GiB and more are not supported"))?;
            Ok((count, Buffer::zeroed(slots.total())?, Buffer::zeroed(slots.total())?))
        });
        let (count, outgoing, incoming) = cx.agree(parts)?;
        let (named, raw) = Named::create(cx, directory, files)?;
        Ok(Created { count, outgoing, incoming, named, raw })
    }
}
