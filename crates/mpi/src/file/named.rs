//! Named files: their names, their creation, and the removal of a name.

use std::{
    env,
    ffi::{CString, c_int},
    fs,
    hash::{BuildHasher, RandomState},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::{Error, Result},
    unit::Rank,
};

use crate::{Buffer, Comm, MpiTeam, sys::error};

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
        match code == ffi::MPI_SUCCESS as c_int {
            true => Ok(raw),
            false => Err(self.failed("create", &error::text(code))),
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
