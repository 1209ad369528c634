//! Commands that are programs of their own, below `verify/`: xtask builds them and becomes them.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use ombx_toolchain::{Result, cannot_run, cargo};

/// Command line of the program, `--help` included.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

impl Arguments {
    /// Replaces this process by the program of a package. Returns only if that fails.
    pub(crate) fn exec(&self, package: &str) -> Result<ExitCode> {
        let mut command = run(package);
        let source = command.args(&self.words).stdin(Stdio::inherit()).exec();
        Err(cannot_run(&command, source))
    }
}

/// Programs that measure their own code, as release builds.
const MEASURED: [&str; 1] = ["ombx-scale"];

/// Returns a command that builds and runs the program of a package; arguments of the program may be added.
pub(crate) fn run(package: &str) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", package]);
    command.args(MEASURED.contains(&package).then_some("--release")).arg("--manifest-path");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml"));
    // A test that calls xtask has the target directory of its MPI in the environment. Verification programs are built
    // once, beside xtask.
    command
        .args(own_target().into_iter().flat_map(|target| ["--target-dir".into(), target.into_os_string()]));
    command.arg("--");
    command
}

/// Returns the target directory in which this program was built.
fn own_target() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.parent()?.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_belong_to_the_program() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let line = <Line as clap::Parser>::parse_from(["x", "--gate", "--mpi", "mpich", "--", "-h"]);
        assert_eq!(line.arguments.words, ["--gate", "--mpi", "mpich", "--", "-h"]);
    }
}
