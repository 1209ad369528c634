//! Replacement of the launcher of MPI ranks in a build without MPI.

use std::{ffi::OsString, path::Path, process::Command};

use ombx_core::benchmark::Threading;
use ombx_host::remote_shell::RemoteShell;
use ombx_record::error::{Error, Result};

use crate::launch::start::Start;

pub(crate) const NO_MPI: &str =
    "this build of ombx has no MPI: load or install an MPI, or build ombx-cli with the feature `mpi`";

/// Returns the name of the MPI library.
pub fn library() -> String {
    "no MPI".into()
}

/// Checks that MPI has sessions.
///
/// # Errors
/// Usage error: this build has no MPI.
pub fn sessions_exist() -> Result<()> {
    Err(Error::usage(NO_MPI))
}

/// Returns whether an error says that the launcher belongs to another MPI: never.
pub fn is_of_another_mpi(_: &Error) -> bool {
    false
}

/// Returns whether a launcher starts ranks of this build's MPI, which has none: unknown.
pub fn is_of_this_mpi(_: &str) -> Option<bool> {
    None
}

/// Returns the launcher of another MPI in the search path: none is another one.
pub fn of_another_mpi_in_path() -> Option<String> {
    None
}

/// Returns whether a launcher belongs to another MPI than this build, which has none: it does not.
pub(super) fn belongs_to_another_mpi(_: &Path) -> bool {
    false
}

/// Returns whether the launcher, which does not exist, knows the hosts of an allocation by their numbers.
pub(super) fn knows_numbers_of_hosts(_: &Start) -> bool {
    false
}

/// Returns the remote shell of the launcher, which does not exist.
pub fn remote_shell(_: &Start) -> Option<RemoteShell> {
    None
}

/// Returns the command that starts the ranks.
///
/// # Errors
/// Usage error: this build has no MPI.
pub fn command(_: &Start, _: u32, _: Threading, _: Vec<OsString>) -> Result<Command> {
    Err(Error::usage(NO_MPI))
}
