//! Programs that are measured.

use std::path::PathBuf;

use ombx_toolchain::{command::compile, failure::Result, mpi::Mpi, release, workspace::Workspace};

/// ombx and a bare MPI program, built with one MPI.
pub(crate) struct Programs {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// C program that starts MPI, prints a line and ends.
    pub(crate) bare: PathBuf,
}

impl Programs {
    /// Builds both; `build` says whether ombx is built or used as it is.
    pub(crate) fn build(mpi: Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let ombx = release::ombx(&mpi, workspace, build)?;
        let directory = mpi.target(&workspace.target).join("scale");
        let bare = compile(&mpi.mpicc, &["-O2"], &directory, "bare.c", include_str!("bare.c"))?;
        Ok(Self { mpi, ombx, bare })
    }
}
