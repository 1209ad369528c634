//! Opening and closing of a file that exists, with a block that every rank writes in between.

use std::{
    ffi::{CString, c_int, c_void},
    path::Path,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    team::Team,
    unit::Rank,
};

use super::named::{Files, Named};
use crate::file::named::Created;
use crate::{
    Buffer, MpiTeam,
    sys::{
        constants::BYTE,
        error::{self, check},
    },
};

/// A file that ranks open and close, together or each its own. It keeps its name until this is dropped.
#[derive(Debug)]
pub struct Opening {
    comm: ffi::MPI_Comm,
    path: CString,
    mode: c_int,
    /// Bytes of a block.
    count: c_int,
    /// Number of this rank among those that open the file together.
    rank: Rank,
    outgoing: Buffer,
    incoming: Buffer,
    named: Named,
}

impl Opening {
    /// Creates the file. Collective.
    ///
    /// # Errors
    /// The file cannot be created, or the block is too long.
    pub fn create(cx: &Context<'_>, directory: &Path, files: Files, slots: Slots) -> Result<Opening> {
        let team: &MpiTeam = cx.fabric()?;
        let Created { count, outgoing, incoming, named, raw } = Created::of(cx, directory, files, slots)?;
        let mode = ffi::MPI_MODE_CREATE as c_int | ffi::MPI_MODE_RDWR as c_int;
        let (comm, rank) = (named.comm.raw(), named.comm.rank());
        let path = cx.agree(named.c_path())?;
        let opening = Opening { comm, path, mode, count, rank, outgoing, incoming, named };
        cx.agree(opening.close(raw))?;
        team.lend(|handles| {
            (handles.comm, handles.path) = (comm, opening.path.as_ptr());
            handles.remote = opening.offset(rank) as ffi::MPI_Aint;
            (handles.outgoing, handles.incoming) =
                (opening.outgoing.start().cast(), opening.incoming.start().cast());
            handles.describe_slots(slots);
        });
        Ok(opening)
    }

    /// Opens the file, writes the block of this rank, and closes the file. Collective among the ranks of the file.
    #[inline(always)]
    pub fn iterate(&self) -> Result<()> {
        let (raw, from) = (self.open()?, self.outgoing.start().cast::<c_void>());
        let offset = self.offset(self.rank);
        // SAFETY: the file is open, and the buffer has `count` bytes.
        check("MPI_File_write_at", unsafe {
            ffi::MPI_File_write_at(raw, offset, from, self.count, BYTE, ffi::RSMPI_STATUS_IGNORE)
        })?;
        self.close(raw)
    }

    #[inline(always)]
    fn open(&self) -> Result<ffi::MPI_File> {
        let (comm, path, mode) = (self.comm, self.path.as_ptr(), self.mode);
        // SAFETY: this static of mpi-sys is never written.
        let mut raw = unsafe { ffi::RSMPI_FILE_NULL };
        // SAFETY: `named` owns the communicator, the path ends with a zero, and the result is valid for the call.
        check("MPI_File_open", unsafe {
            ffi::MPI_File_open(comm, path, mode, ffi::RSMPI_INFO_NULL, &raw mut raw)
        })?;
        Ok(raw)
    }

    #[inline(always)]
    fn close(&self, mut raw: ffi::MPI_File) -> Result<()> {
        // SAFETY: the file is open, and every rank that has opened it closes it.
        check("MPI_File_close", unsafe { ffi::MPI_File_close(&raw mut raw) })
    }

    /// Returns the offset of the block of a rank.
    #[inline(always)]
    fn offset(&self, rank: Rank) -> ffi::MPI_Offset {
        ffi::MPI_Offset::from(self.count) * ffi::MPI_Offset::from(rank.0)
    }

    /// Returns the rank of the team whose block [`Opening::read_back`] reads.
    pub fn neighbour(&self, team: &dyn Team) -> Rank {
        if self.named.comm.size() == team.size() { self.next() } else { team.rank() }
    }

    fn next(&self) -> Rank {
        Rank((self.rank.0 + 1) % self.named.comm.size())
    }

    /// Reads the block that the next rank has written. Collective, untimed.
    pub fn read_back(&self) -> Result<()> {
        self.named.comm.barrier()?;
        let (raw, into) = (self.open()?, self.incoming.start().cast::<c_void>());
        let offset = self.offset(self.next());
        // SAFETY: as in `iterate`.
        check("MPI_File_read_at", unsafe {
            ffi::MPI_File_read_at(raw, offset, into, self.count, BYTE, ffi::RSMPI_STATUS_IGNORE)
        })?;
        self.close(raw)
    }

    /// Returns the buffer of the block that is written.
    pub fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    /// Returns the buffer of the block that is read.
    pub fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // Other ranks may still read.
        if error::may_free() {
            let _ = self.named.comm.barrier();
        }
        let _ = self.named.remove();
    }
}
