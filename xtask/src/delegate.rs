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
    /// Replaces this process by a program. Returns only if that fails.
    pub(crate) fn exec(&self, program: Program) -> Result<ExitCode> {
        let mut command = program.run();
        let source = command.args(&self.words).stdin(Stdio::inherit()).exec();
        Err(cannot_run(&command, source))
    }
}

/// Program of a package below `verify/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Benches,
    ClusterBench,
    Coverage,
    Faults,
    Fidelity,
    Libraries,
    Scale,
    Speed,
    Testbed,
}

impl Program {
    /// Returns the name of the binary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Benches => "ombx-benches",
            Self::ClusterBench => "ombx-cluster-bench",
            Self::Coverage => "ombx-coverage",
            Self::Faults => "ombx-faults",
            Self::Fidelity => "ombx-fidelity",
            Self::Libraries => "ombx-libraries",
            Self::Scale => "ombx-scale",
            Self::Speed => "ombx-speed",
            Self::Testbed => "ombx-testbed",
        }
    }

    /// Returns the name of the package that contains it.
    fn package(self) -> &'static str {
        match self {
            Self::Coverage | Self::Faults | Self::Fidelity => self.name(),
            Self::Benches | Self::Scale | Self::Speed => "ombx-cost",
            Self::ClusterBench | Self::Libraries | Self::Testbed => "ombx-hosts",
        }
    }

    /// Returns a command that builds and runs the program; arguments of the program may be added.
    pub(crate) fn run(self) -> Command {
        let mut command = cargo();
        command.args(["run", "--quiet", "--package", self.package(), "--bin", self.name()]);
        // The default feature of ombx-fidelity needs an MPI.
        command.arg("--no-default-features");
        // This program measures its own code.
        command.args((self == Self::Scale).then_some("--release")).arg("--manifest-path");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml"));
        // A test that calls xtask has the target directory of its MPI in the environment. Verification programs are built
        // once, beside xtask.
        command.args(
            own_target().into_iter().flat_map(|target| ["--target-dir".into(), target.into_os_string()]),
        );
        command.arg("--");
        command
    }
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
