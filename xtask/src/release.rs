//! The ombx that users have: built in release mode with one MPI.

use std::path::{Path, PathBuf};

use crate::{
    failure::Result,
    mpi::Mpi,
    step::Step,
    workspace::{Workspace, cargo},
};

/// Builds it below a target directory, in that of its MPI, and says where it is.
pub(crate) fn built(mpi: &Mpi, workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--release", "-p", "ombx-cli"]).current_dir(&workspace.root);
    mpi.build_with(&mut command, target);
    Step::run(format!("{} ombx", mpi.flavour), &mut command).built()?;
    Ok(mpi.target(target).join("release/ombx"))
}
