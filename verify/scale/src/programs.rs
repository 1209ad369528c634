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
        let target = mpi.target(&workspace.target);
        let ombx = if build {
            release::built(&mpi, workspace, &workspace.target)?
        } else {
            release::existing(target.join("release/ombx"))?
        };
        let source = include_str!("bare.c");
        let bare = compile(&mpi.mpicc, &["-O2"], &target.join("scale"), "bare.c", source)?;
        Ok(Self { mpi, ombx, bare })
    }
}
