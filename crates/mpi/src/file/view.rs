//! File views: the blocks of one rank, or every byte.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::error::Result;

use crate::sys::{
    constants::BYTE,
    error::{self, check, check_freed},
};

/// Name of the data representation that does not convert (MPI 4.0, 14.5.2).
const NATIVE: &std::ffi::CStr = c"native";

/// Bytes of a file that a rank sees.
#[derive(Debug)]
pub(super) enum View {
    /// Every byte.
    Whole,
    /// Blocks of a rank: the first is `first` bytes after the start of the file.
    Blocks { first: ffi::MPI_Offset, tile: Tile },
}

impl View {
    /// Sets the view of a file, which moves both pointers to its start. Collective.
    pub(super) fn set(&self, file: ffi::MPI_File) -> Result<()> {
        let (first, tile) = match self {
            View::Whole => (0, BYTE),
            View::Blocks { first, tile } => (*first, tile.raw),
        };
        // SAFETY: the caller passes an open file, both datatypes are committed, and the name ends with a zero.
        check("MPI_File_set_view", unsafe {
            ffi::MPI_File_set_view(file, first, BYTE, tile, NATIVE.as_ptr(), ffi::RSMPI_INFO_NULL)
        })
    }
}

/// A block, and bytes of other ranks after it, as a committed datatype.
#[derive(Debug)]
pub(super) struct Tile {
    raw: ffi::MPI_Datatype,
}

impl Tile {
    /// Returns a block of `bytes` bytes of which one begins every `extent` bytes.
    pub(super) fn of(bytes: c_int, extent: ffi::MPI_Aint) -> Result<Tile> {
        let (mut block, mut raw) = (BYTE, BYTE);
        // SAFETY: both results are valid for the calls. The block is freed once; the new datatype does not need it.
        unsafe {
            check("MPI_Type_contiguous", ffi::MPI_Type_contiguous(bytes, BYTE, &raw mut block))?;
            check("MPI_Type_create_resized", ffi::MPI_Type_create_resized(block, 0, extent, &raw mut raw))?;
            check("MPI_Type_free", ffi::MPI_Type_free(&raw mut block))?;
            check("MPI_Type_commit", ffi::MPI_Type_commit(&raw mut raw))?;
        }
        Ok(Tile { raw })
    }
}

impl Drop for Tile {
    fn drop(&mut self) {
        if error::may_free() {
            // SAFETY: the datatype exists until here. MPI keeps it for the view of an open file.
            check_freed(c"MPI_Type_free", unsafe { ffi::MPI_Type_free(&raw mut self.raw) });
        }
    }
}
