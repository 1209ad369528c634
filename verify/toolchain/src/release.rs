//! Builds of ombx with one MPI.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi},
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
    if profile == "dev" {
        take_over(mpi, workspace, target);
    }
    let mut command = cargo();
    command.args(["build", "--profile", profile, "-p", "ombx-cli"]).current_dir(&workspace.root);
    mpi.build_with(&mut command, target);
    Step::run(format!("{} ombx", mpi.flavour), &mut command).built()?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(mpi.target(target).join(directory).join("ombx"))
}

/// Fills the new target directory of an MPI with what another build has compiled, without the crates that depend on the MPI. What
/// cannot be copied is compiled.
fn take_over(mpi: &Mpi, workspace: &Workspace, target: &Path) {
    let own = mpi.target(target).join("debug");
    let others = Flavour::ALL.map(|flavour| target.join(flavour.key()).join("debug"));
    let built = |directory: &PathBuf| directory.join(".fingerprint").is_dir();
    let Some(other) = others.into_iter().chain([target.join("debug")]).find(built) else { return };
    if built(&own) || std::fs::create_dir_all(&own).is_err() {
        return;
    }
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--reflink=auto"]);
    copy.args([".fingerprint", "build", "deps"].map(|part| other.join(part))).arg(&own);
    let mut clean = cargo();
    // Its build script does not notice another MPI; crates that depend on it are compiled again.
    clean.args(["clean", "--quiet", "-p", "mpi-sys"]).current_dir(&workspace.root);
    mpi.build_with(&mut clean, target);
    let done = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    if !(done(&mut copy) && done(&mut clean)) {
        let _ = std::fs::remove_dir_all(&own);
    }
}

/// Returns a binary that exists already, or an error that names it.
pub fn existing(ombx: PathBuf) -> Result<PathBuf> {
    if ombx.is_file() {
        return Ok(ombx);
    }
    Err(Failure::Missing(format!("{} is not built", ombx.display())))
}
