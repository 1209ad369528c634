//! Opening and closing of a file that exists, with a block that every rank writes in between.

use std::{
    env,
    ffi::{CString, c_int, c_void},
    fs,
    hash::{BuildHasher, RandomState},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::{Error, Result},
    team::Team,
    unit::Rank,
};

use crate::{
    Buffer, Comm, MpiTeam,
    sys::{
        BYTE,
        datatype::DerivedDatatype,
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
        let Created { count, outgoing, incoming, named, raw } = Created::new(cx, directory, files, slots)?;
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

/// Name of the data representation that does not convert (MPI 4.0, 14.5.2).
const NATIVE: &std::ffi::CStr = c"native";

/// Bytes of a file that a rank sees.
#[derive(Debug)]
pub(super) enum View {
    /// Every byte.
    Whole,
    /// Blocks of a rank: the first is `first` bytes after the start of the file.
    Blocks { first: ffi::MPI_Offset, tile: DerivedDatatype },
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

/// Returns a block, and bytes of other ranks after it: a block has `bytes` bytes, and one begins every `extent` bytes.
pub(super) fn tile(bytes: c_int, extent: ffi::MPI_Aint) -> Result<DerivedDatatype> {
    let (mut block, mut raw) = (BYTE, BYTE);
    // SAFETY: both results are valid for the calls. The block is freed once; the new datatype does not need it.
    unsafe {
        check("MPI_Type_contiguous", ffi::MPI_Type_contiguous(bytes, BYTE, &raw mut block))?;
        check("MPI_Type_create_resized", ffi::MPI_Type_create_resized(block, 0, extent, &raw mut raw))?;
        check("MPI_Type_free", ffi::MPI_Type_free(&raw mut block))?;
        check("MPI_Type_commit", ffi::MPI_Type_commit(&raw mut raw))?;
    }
    Ok(DerivedDatatype { raw, elements: 1 })
}

ombx_core::parameter! {
    /// Files that the ranks access
    pub enum Files: "files", Always, default One {
        /// One file, in which blocks of the ranks alternate
        One = "one",
        /// A file of each rank
        Own = "own",
    }
}

/// Environment variable with a hexadecimal number, which is in the names of all files of a job. The process that starts the ranks
/// sets it, and removes files with such names when the ranks have ended.
pub const FILES_VARIABLE: &str = "OMBX_FILES";

/// Returns the beginning of the names of all files of a job with this number.
pub fn files_of(job: u64) -> String {
    format!("ombx-io-{job:016x}")
}

/// A file with a name, and the ranks that open it together.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) comm: Comm,
    path: PathBuf,
}

impl Named {
    /// Creates a file in a directory and opens it on all ranks, or one on each. Collective.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(cx: &Context<'_>, directory: &Path, files: Files) -> Result<(Named, ffi::MPI_File)> {
        let team: &MpiTeam = cx.fabric()?;
        let (comm, of_rank) = match files {
            Files::One => (team.comm().group(0)?, String::new()),
            Files::Own => (team.comm().group(cx.rank().0)?, format!("-{}", cx.rank())),
        };
        let random = || RandomState::new().hash_one(0);
        let job = env::var(FILES_VARIABLE).ok().and_then(|job| u64::from_str_radix(&job, 16).ok());
        let job = cx.team.broadcast_value(job.unwrap_or_else(random))?;
        let random = cx.team.broadcast_value(random())?;
        let path = directory.join(format!("{}-{random:016x}{of_rank}", files_of(job)));
        let named = Named { comm, path };
        let opened = named.open_new();
        let is_open = opened.is_ok();
        match cx.agree(opened) {
            Ok(raw) => Ok((named, raw)),
            Err(why) => {
                if is_open {
                    let _ = named.remove();
                }
                Err(why)
            }
        }
    }

    /// Returns the path for calls of MPI.
    pub(super) fn c_path(&self) -> Result<CString> {
        CString::new(self.path.as_os_str().as_bytes()).map_err(|e| self.failed("open", &e.to_string()))
    }

    fn open_new(&self) -> Result<ffi::MPI_File> {
        let name = self.c_path()?;
        let mode = ffi::MPI_MODE_CREATE as c_int | ffi::MPI_MODE_EXCL as c_int | ffi::MPI_MODE_RDWR as c_int;
        let comm = self.comm.raw();
        // SAFETY: this static of mpi-sys is never written.
        let mut raw = unsafe { ffi::RSMPI_FILE_NULL };
        // SAFETY: the communicator is valid, the name ends with a zero, and the result is valid for the call. Errors of files return.
        let code =
            unsafe { ffi::MPI_File_open(comm, name.as_ptr(), mode, ffi::RSMPI_INFO_NULL, &raw mut raw) };
        if code == ffi::MPI_SUCCESS as c_int {
            Ok(raw)
        } else {
            Err(self.failed("create", &error::text(code)))
        }
    }

    /// Removes the name, on one rank of those that have opened the file, and that of ROMIO's hidden file with the shared pointer.
    pub(super) fn remove(&self) -> Result<()> {
        if self.comm.rank() != Rank(0) {
            return Ok(());
        }
        self.remove_hidden();
        fs::remove_file(&self.path).map_err(|e| self.failed("remove", &e.to_string()))
    }

    /// Removes hidden files whose names begin with that of the file.
    fn remove_hidden(&self) {
        let (Some(directory), Some(name)) = (self.path.parent(), self.path.file_name()) else { return };
        let beginning = [b".", name.as_bytes(), b"."].concat();
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(&beginning)) {
            // The last rank that closes the file would remove it too.
            let _ = fs::remove_file(entry.path());
        }
    }

    fn failed(&self, what: &str, why: &str) -> Error {
        Error::unsupported(format!("cannot {what} {}: {why}", self.path.display()))
    }
}

/// Checks that a directory exists on this rank's host.
pub(super) fn check_directory(directory: &Path) -> Result<()> {
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::unsupported(format!("{} is not a directory", directory.display()))),
        Err(e) => Err(Error::unsupported(format!("cannot use the directory {}: {e}", directory.display()))),
    }
}

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
    pub(super) fn new(cx: &Context<'_>, directory: &Path, files: Files, slots: Slots) -> Result<Created> {
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
