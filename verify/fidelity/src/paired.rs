//! The program that alternates blocks of ombx and of C: built with one MPI, started, and its output.

use std::{fs, path::PathBuf, process::Command};

use serde::Deserialize;
use serde_json::Value;

use ombx_toolchain::{Failure, Flavour, Mpi, Result, Step, Workspace, cargo, output_and_failure, shown};

/// Deadline of a launch in seconds. Both launchers end the job then.
const DEADLINE: &str = "900";

/// The program, built with one MPI.
#[derive(Debug)]
pub(crate) struct Paired {
    pub(crate) mpi: Mpi,
    pub(crate) program: PathBuf,
    /// Directory for files of this command, below the target directory.
    pub(crate) directory: PathBuf,
}

/// One row of a launch.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Line {
    /// Benchmark and options.
    pub(crate) row: String,
    /// Kind of window in this launch.
    #[serde(default)]
    pub(crate) window: Option<String>,
    pub(crate) bytes: u64,
    /// Messages in flight.
    pub(crate) depth: u32,
    /// Largest accepted ratio.
    pub(crate) goal: f64,
    /// Median of the ratio over pairs of blocks.
    #[serde(default)]
    pub(crate) ratio: Option<f64>,
    /// Nanoseconds of an iteration.
    #[serde(default)]
    pub(crate) ombx_ns: f64,
    #[serde(default)]
    pub(crate) c_ns: f64,
    /// Whether callgrind has profiles of the row.
    #[serde(default)]
    pub(crate) counted: bool,
    /// Reason why the row does not run with this MPI.
    #[serde(default)]
    pub(crate) skipped: Option<String>,
}

impl Line {
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.row, self.bytes)
    }
}

/// Output of a launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launched {
    /// First line of the version string of the library.
    pub(crate) library: String,
    pub(crate) lines: Vec<Line>,
}

impl Paired {
    pub(crate) fn build(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let program = target.join("release").join("ombx-paired");
        if build {
            let mut command = cargo();
            command
                .args(["build", "--release", "-p", "ombx-fidelity", "--bin", "ombx-paired"])
                .current_dir(&workspace.root);
            // callgrind names functions by symbols and lines.
            command.args(["--config", "profile.release.strip=\"none\""]);
            command.args(["--config", "profile.release.debug=\"line-tables-only\""]);
            mpi.build_with(&mut command, &workspace.target);
            Step::run(format!("{} ombx-paired", mpi.flavour), &mut command).built()?;
        }
        let directory = target.join("fidelity");
        fs::create_dir_all(&directory).map_err(Failure::file(&directory))?;
        if !program.is_file() {
            return Err(Failure::Missing(format!("{} is not built", program.display())));
        }
        Ok(Self { mpi: mpi.clone(), program, directory })
    }

    /// Runs the program on two ranks with these arguments.
    pub(crate) fn launch(&self, words: &[String]) -> Result<Launched> {
        let mut command = launcher(&self.mpi);
        command.args(["-n", "2"]).arg(&self.program).args(words);
        finished(&mut command)
    }
}

/// Returns the launcher of an MPI: each rank is bound to its own core.
pub(crate) fn launcher(mpi: &Mpi) -> Command {
    let mut command = Command::new(&mpi.mpiexec);
    command.args(match mpi.flavour {
        Flavour::Mpich => ["-bind-to", "core"],
        Flavour::OpenMpi => ["--bind-to", "core"],
    });
    mpi.launch_with(&mut command);
    // Open MPI looks for a remote shell even if it needs none.
    command.env("OMPI_MCA_plm_rsh_agent", "sh").env("MPIEXEC_TIMEOUT", DEADLINE);
    command
}

/// Runs a launcher and reads what rank 0 prints.
pub(crate) fn finished(command: &mut Command) -> Result<Launched> {
    let (text, failure) = output_and_failure(command)?;
    let launched = read(&text);
    match (launched, failure) {
        (Err(detail), _) => Err(Failure::Command { command: shown(command), detail }),
        (Ok(_), Some(failure)) => Err(failure),
        (Ok(launched), None) => Ok(launched),
    }
}

/// Parses lines of JSON among the messages of a launcher.
fn read(text: &str) -> std::result::Result<Launched, String> {
    let mut launched = Launched::default();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let value: Value = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
        if let Some(error) = value["error"].as_str() {
            return Err(error.to_owned());
        }
        match value["library"].as_str() {
            Some(library) => launched.library = library.to_owned(),
            None => {
                launched.lines.push(serde_json::from_value(value).map_err(|e| format!("{line}: {e}"))?);
            }
        }
    }
    Ok(launched)
}
