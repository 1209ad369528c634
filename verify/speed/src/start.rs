//! Measured programs, and the time before any measurement: launcher, MPI, `ombx list`, build.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use ombx_host::since::Since;
use ombx_record::stats::median;
use ombx_toolchain::{Failure, Flavour, Mpi, Omb, Result, Workspace, cannot_run, compile, failed, release};

/// Deadline of a launch.
const DEADLINE_SECONDS: &str = "900";

/// Release build of ombx, OMB's loops and the bare program, built with one MPI.
pub(crate) struct Program {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    pub(crate) directory: PathBuf,
    bare: PathBuf,
    /// The loops of OMB in C, by names without `osu_`.
    loops: PathBuf,
    /// OMB itself, if there are sources of it.
    omb: Option<Omb>,
}

/// Time before ranks measure.
pub(crate) struct Start {
    pub(crate) flavour: Flavour,
    pub(crate) version: String,
    /// Seconds of a bare MPI program on two ranks, from start to end of the launcher.
    pub(crate) bare_s: Vec<f64>,
    /// Seconds of `ombx list`.
    pub(crate) list_s: Vec<f64>,
    /// Size of the binary.
    pub(crate) bytes: u64,
    /// Size of the binary without symbols and line tables, if `strip` is installed.
    pub(crate) stripped: Option<u64>,
    /// Time of building the release binary from scratch, if requested.
    pub(crate) cold: Option<Duration>,
}

impl Program {
    /// Builds all programs; `build` says whether ombx is built or used as it is, and `omb` is the directory with the sources of OMB.
    pub(crate) fn build(mpi: &Mpi, workspace: &Workspace, build: bool, omb: Option<&Path>) -> Result<Self> {
        let directory = mpi.target(&workspace.target).join("speed");
        let ombx = release::ombx(mpi, workspace, build)?;
        let bare = compile(&mpi.mpicc, &["-O2"], &directory, "start.c", include_str!("start.c"))?;
        let loops = compile(&mpi.mpicc, &["-O2"], &directory, "omb.c", include_str!("omb.c"))?;
        let omb = omb.map(|source| Omb::built(mpi, workspace, source)).transpose()?;
        Ok(Self { mpi: mpi.clone(), ombx, directory, bare, loops, omb })
    }

    /// Returns seconds of the bare program on two ranks.
    pub(crate) fn bare(&self) -> Result<f64> {
        timed(self.two_ranks().arg(&self.bare))
    }

    /// Returns seconds of a program of OMB, by its name without `osu_` and its options.
    pub(crate) fn omb(&self, words: &[&str]) -> Result<f64> {
        let mut command = self.two_ranks();
        match &self.omb {
            Some(omb) => command.arg(omb.program(&format!("osu_{}", words[0]))?).args(&words[1..]),
            None => command.arg(&self.loops).args(words),
        };
        timed(&mut command)
    }

    /// Returns the command that starts two ranks of a program, which must be added.
    fn two_ranks(&self) -> Command {
        let mut command = self.command(&self.mpi.mpiexec);
        command.args(["-n", "2"]);
        if self.mpi.flavour == Flavour::OpenMpi {
            command.arg("--oversubscribe");
        }
        command
    }

    /// Returns a command that can start ranks.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.mpi.launch_with(&mut command);
        // Open MPI looks for a remote shell even if it needs none.
        command.env("OMPI_MCA_plm_rsh_agent", "sh").env("MPIEXEC_TIMEOUT", DEADLINE_SECONDS);
        command
    }
}

impl Start {
    /// Measures both programs alternately; `ombx list`, which is short, five times per turn.
    pub(crate) fn measure(program: &Program, times: u16, cold: Option<Duration>) -> Result<Self> {
        let (mut bare_s, mut list_s) = (Vec::new(), Vec::new());
        for _ in 0..times {
            bare_s.push(program.bare()?);
            for _ in 0..5 {
                list_s.push(timed(program.command(&program.ombx).arg("list"))?);
            }
        }
        let size = |path: &Path| fs::metadata(path).map(|file| file.len());
        let bytes = size(&program.ombx).map_err(Failure::file(&program.ombx))?;
        let copy = program.directory.join("stripped");
        let strip = Command::new("strip").arg("-o").arg(&copy).arg(&program.ombx).status();
        let stripped = strip.is_ok_and(|status| status.success()).then(|| size(&copy).ok()).flatten();
        let _ = fs::remove_file(copy);
        let (flavour, version) = (program.mpi.flavour, program.mpi.version.clone());
        Ok(Self { flavour, version, bare_s, list_s, bytes, stripped, cold })
    }
}

/// Measures the time to build the release binary from scratch, in a directory that is removed afterwards.
pub(crate) fn cold_build(mpi: &Mpi, workspace: &Workspace) -> Result<Duration> {
    let directory = workspace.target.join("cold");
    let since = Since::now();
    let built = release::built(mpi, workspace, &directory);
    let took = since.elapsed();
    let _ = fs::remove_dir_all(&directory);
    built.map(|_| took)
}

/// Returns seconds of a command that succeeds.
pub(crate) fn timed(command: &mut Command) -> Result<f64> {
    timed_or(command, None).map(|(seconds, _)| seconds)
}

/// Returns seconds of a command that succeeds or ends with an accepted exit code, and its messages.
pub(crate) fn timed_or(command: &mut Command, accepted: Option<i32>) -> Result<(f64, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let since = Since::now();
    let output = command.output().map_err(|source| cannot_run(command, source))?;
    let took = since.elapsed().as_secs_f64();
    if output.status.success() || output.status.code().is_some_and(|code| accepted == Some(code)) {
        return Ok((took, String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Err(failed(command, &output))
}

/// Returns median and minimum.
pub(crate) fn middle_and_least(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (median(values).unwrap_or(f64::NAN), least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_has_no_time() {
        let shell = |script: &str| timed(Command::new("sh").args(["-c", script]));
        assert!(shell("exit 0").unwrap() > 0.0);
        let failure = shell("echo sorry >&2; exit 3").unwrap_err().to_string();
        assert!(failure.contains("sorry") && failure.contains('3'), "{failure}");
    }

    #[test]
    fn an_odd_launch_does_not_move_the_median() {
        assert_eq!(middle_and_least(&[3.0, 1.0, 100.0]), (3.0, 1.0));
    }
}
