//! `cargo xtask ci`: all checks that a change must pass, fastest first.

use std::process::{Command, ExitCode};

use ombx_toolchain::{
    command::succeeds,
    failure::Result,
    mpi::{Mpi, Which},
    step::{Outcome, Step},
    workspace::{Workspace, cargo},
};

use crate::{
    test::{self, Parts},
    tidy,
};

/// Oldest Rust with which ombx compiles: `rust-version` of the workspace.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");
/// Directory of the published crates. The other packages of the workspace are tools of developers.
const PUBLISHED: &str = "crates/";

/// Run every check: format, lints, tidy, docs, packages, dependencies, the oldest Rust, then `cargo xtask test`
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask ci --mpi mpich")]
pub(crate) struct Options {
    /// MPI to test with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Install missing packages without asking
    #[arg(long)]
    yes: bool,
    /// Only checks that take less than two minutes each: no tests, and not the oldest Rust
    #[arg(long)]
    fast: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let facts = test::facts(options.mpi, options.yes)?;
    let workspace = Workspace::read()?;
    let mpis = facts.mpis();
    let checks = Checks { workspace: &workspace, mpi: mpis.first() };
    let mut steps = checks.fast();
    if !options.fast {
        steps.push(checks.oldest());
        steps.extend(test::run(&workspace, &facts, Parts { default: true, ..Parts::default() }));
    }
    Ok(test::report(&steps))
}

/// Checks without tests.
struct Checks<'a> {
    workspace: &'a Workspace,
    /// MPI to compile with. The result does not depend on the MPI: one is enough.
    mpi: Option<&'a Mpi>,
}

impl Checks<'_> {
    fn fast(&self) -> Vec<Step> {
        let mut steps = vec![self.with_tool("fmt", "rustup component add rustfmt", &["--all", "--check"])];
        steps.push(Step::of("tidy", || Ok(outcome(tidy::check(self.workspace)?, "violation(s)"))));
        let lints = ["--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.push(self.with_tool("clippy", "rustup component add clippy", &lints));
        let mut docs = self.cargo(&["doc", "--no-deps", "--workspace"]);
        steps.push(Step::run("docs", docs.env("RUSTDOCFLAGS", "-D warnings")));
        steps.push(Step::run("packages", &mut self.packages()));
        // Without advisories, which need a network.
        let sources = ["check", "bans", "licenses", "sources"];
        steps.push(self.with_tool("deny", "cargo install --locked cargo-deny", &sources));
        steps
    }

    /// Compiles everything with the oldest Rust, if it is installed.
    fn oldest(&self) -> Step {
        let name = format!("Rust {OLDEST}");
        let rustup = |words: &[&str]| {
            let mut command = Command::new("rustup");
            command.args(["run", OLDEST, "cargo"]).args(words).current_dir(&self.workspace.root);
            command
        };
        if !succeeds(&mut rustup(&["--version"])) {
            let why = format!("it is not installed (rustup toolchain install --profile minimal {OLDEST})");
            return Step::skipped(name, why);
        }
        let mut check = rustup(&["check", "--locked", "--workspace", "--target-dir"]);
        check.arg(self.workspace.target.join("oldest"));
        if let Some(mpi) = self.mpi {
            check.env("MPICC", &mpi.mpicc);
        }
        Step::run(name, &mut check)
    }

    /// Returns the command that packs the published crates. It fails if a dependency has no version, or is not published.
    fn packages(&self) -> Command {
        let mut command = self.cargo(&["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"]);
        for package in &self.workspace.packages {
            if package.manifest.starts_with(PUBLISHED) {
                command.args(["-p", &package.name]);
            }
        }
        command
    }

    /// Runs a subcommand of cargo, or says how to install it.
    fn with_tool(&self, tool: &str, installation: &str, words: &[&str]) -> Step {
        if succeeds(cargo().args([tool, "--version"])) {
            Step::run(tool, &mut self.cargo(&[&[tool], words].concat()))
        } else {
            Step::skipped(tool, format!("cargo-{tool} is not installed ({installation})"))
        }
    }

    /// Returns a command of cargo. Its target directory is that of tests without MPI: each build for an MPI begins with a copy of it,
    /// so that dependencies are compiled once.
    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = cargo();
        command.args(words).current_dir(&self.workspace.root);
        if let Some(mpi) = self.mpi {
            mpi.build_with(&mut command, &self.workspace.target);
        }
        command.env("CARGO_TARGET_DIR", &self.workspace.target);
        command
    }
}

fn outcome(count: usize, of_what: &str) -> Outcome {
    if count == 0 { Outcome::Passed } else { Outcome::Failed(format!("{count} {of_what}")) }
}

#[cfg(test)]
mod tests {
    use ombx_toolchain::{command::shown, workspace::Package};

    use super::*;

    #[test]
    fn only_published_crates_are_packed() {
        let package = |name: &str, manifest: &str| Package {
            name: name.into(),
            manifest: manifest.into(),
            dependencies: Vec::new(),
        };
        let packages =
            vec![package("ombx-core", "crates/core/Cargo.toml"), package("xtask", "xtask/Cargo.toml")];
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages };
        let shown = shown(&Checks { workspace: &workspace, mpi: None }.packages());
        assert!(shown.contains("-p ombx-core") && !shown.contains("xtask"), "{shown}");
    }
}
