//! Builds of ombx with one MPI.

use std::{
    env,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
};

use crate::{
    command::cannot_run,
    failure::{Failure, Result},
    mpi::{Flavour, Mpi},
    step::Step,
    workspace::{Workspace, cargo},
};

/// Builds ombx in release mode below a target directory and returns its path.
pub fn built(mpi: &Mpi, workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    built_in("release", &[], mpi, workspace, target)
}

/// Returns the release build of ombx in the workspace's target directory: made now, or as it is there.
pub fn ombx(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<PathBuf> {
    if build {
        return built(mpi, workspace, &workspace.target);
    }
    existing(mpi.target(&workspace.target).join("release/ombx"))
}

/// Builds ombx as [`built`] does, with the features of an installation.
pub fn built_as_installed(mpi: &Mpi, workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    built_in("release", &INSTALLED, mpi, workspace, target)
}

/// Profile of the first build on a machine, which is the quickest one whose timed code is that of a release.
const DEMO: &str = "demo";

/// Builds ombx for a first look below a target directory and returns its path.
pub fn demo(mpi: &Mpi, workspace: &Workspace, target: &Path) -> Result<PathBuf> {
    built_in(DEMO, &[], mpi, workspace, target)
}

/// Starts to compile what [`demo`] needs before there is an MPI, without output: packages are installed meanwhile.
pub fn demo_begun(flavour: Flavour, workspace: &Workspace, target: &Path) -> Option<Child> {
    let mut command = cargo();
    command.args(["build", "--profile", DEMO, "-p", "ombx-cli", "--keep-going", "--quiet", "--target-dir"]);
    command.arg(target.join(flavour.key())).current_dir(&workspace.root);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// A profile of the workspace gives its name to the directory of what it builds.
fn built_in(
    profile: &str,
    arguments: &[&str],
    mpi: &Mpi,
    workspace: &Workspace,
    target: &Path,
) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--profile", profile, "-p", "ombx-cli"]).args(arguments);
    command.current_dir(&workspace.root);
    mpi.build_with(&mut command, target);
    Step::run(format!("{} ombx", mpi.flavour), &mut command).built()?;
    Ok(mpi.target(target).join(profile).join("ombx"))
}

/// Features that installations have and the first build on a machine does not need: files of figures, manual pages and the schema.
pub const INSTALLED: [&str; 2] = ["--features", "ombx-cli/figures,ombx-cli/codegen"];
/// Selection of cargo that each command about tests has: the features of a dependency follow from the selected packages, and other
/// features mean another compilation.
pub const TESTED: [&str; 3] = ["--workspace", INSTALLED[0], INSTALLED[1]];
/// Everything that is tested.
pub const ALL: &[&str] = &["--lib", "--bins", "--tests"];
/// What depends on the MPI: ombx, and the tests on ranks.
pub const OF_EACH_MPI: &[&str] = &["--bin", "ombx", "--test", "ranks", "--test", "rank_harness"];

/// Builds [`ALL`] or [`OF_EACH_MPI`] in debug mode in the workspace's target directory and returns the path of ombx.
pub fn built_for_tests(mpi: &Mpi, workspace: &Workspace, targets: &[&str]) -> Result<PathBuf> {
    let target = &workspace.target;
    take_over(mpi, workspace, target);
    let mut command = cargo();
    command.arg("build").args(TESTED).args(targets).current_dir(&workspace.root);
    mpi.build_with(&mut command, target);
    Step::run(format!("{} ombx and tests", mpi.flavour), &mut command).built()?;
    Ok(mpi.target(target).join("debug/ombx"))
}

/// Fills the new target directory of an MPI with what another build has compiled, without the crates that depend on the MPI. What
/// cannot be copied is compiled.
fn take_over(mpi: &Mpi, workspace: &Workspace, target: &Path) {
    let own = mpi.target(target).join("debug");
    let others = Flavour::ALL.map(|flavour| target.join(flavour.key()).join("debug"));
    let built = |directory: &PathBuf| directory.join(".fingerprint").is_dir();
    let Some(other) = others.into_iter().find(built) else { return };
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

/// Becomes the release build of a program of a package, with the same arguments. Returns only if that fails.
pub fn become_release(package: &str, program: &str, workspace: &Workspace) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", package, "--bin", program, "--target-dir"]);
    command.arg(&workspace.target).arg("--").args(env::args_os().skip(1)).current_dir(&workspace.root);
    let source = command.exec();
    Err(cannot_run(&command, source))
}

/// Returns a binary that exists already, or an error that names it.
pub fn existing(ombx: PathBuf) -> Result<PathBuf> {
    if ombx.is_file() {
        return Ok(ombx);
    }
    Err(Failure::Missing(format!("{} is not built", ombx.display())))
}
