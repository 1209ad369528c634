//! All cases, by kind of fault. A new case is a line in the file of its kind.

mod corruption;
mod files;
mod launcher;
mod limits;
mod mpi;
mod one_row;
mod output;
mod pipeline;
mod process;
mod rendezvous;
mod sockets;

pub(crate) use self::corruption::defect;
use super::{case::Case, stage::Stage};

/// Returns all cases of one MPI, in the order of the table.
pub(crate) fn all(stage: &Stage) -> Vec<Case> {
    let kinds = [
        corruption::cases,
        mpi::cases,
        process::cases,
        one_row::cases,
        launcher::cases,
        limits::cases,
        output::cases,
        files::cases,
        sockets::cases,
        rendezvous::cases,
        pipeline::cases,
    ];
    kinds.iter().flat_map(|kind| kind(stage)).collect()
}
