//! Builds of ombx with one MPI.

use std::path::{Path, PathBuf};

use crate::{
    failure::{Failure, Result},
    mpi::Mpi,
    step::Step,
    workspace::{Workspace, cargo},
};

/// Builds ombx in release mode below a target directory and returns its path.
pub fn built(mpi: &Mpi, workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    build(mpi, workspace, target, "release")
}

/// Builds ombx in debug mode in the workspace's target directory and returns its path.
pub fn built_for_tests(mpi: &Mpi, workspace: &Workspace) -> Result<PathBuf> {
    build(mpi, workspace, &workspace.target, "dev")
}

fn build(mpi: &Mpi, workspace: &Workspace, target: &Path, profile: &str) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--profile", profile, "-p", "ombx-cli"]).current_dir(&workspace.root);
    mpi.build_with(&mut command, target);
    Step::run(format!("{} ombx", mpi.flavour), &mut command).built()?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(mpi.target(target).join(directory).join("ombx"))
}

/// Returns a binary that exists already, or an error that names it.
pub fn existing(ombx: PathBuf) -> Result<PathBuf> {
    if ombx.is_file() {
        return Ok(ombx);
    }
    Err(Failure::Missing(format!("{} is not built", ombx.display())))
}
