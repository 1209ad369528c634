//! The cases, by what goes wrong. A new one is a line in the file of its kind; a new kind is a file, named here.

mod corruption;
mod launcher;
mod mpi;
mod output;
mod process;
mod sockets;

use super::{case::Case, stage::Stage};

/// All cases of one MPI, in the order of the table.
pub(crate) fn all(stage: &Stage) -> Vec<Case> {
    [corruption::cases, mpi::cases, process::cases, launcher::cases, output::cases, sockets::cases]
        .iter()
        .flat_map(|kind| kind(stage))
        .collect()
}
