//! `cargo xtask ci`: all checks that a change must pass, fastest first.

use std::process::ExitCode;

use ombx_toolchain::{
    command::succeeds,
    failure::Result,
    mpi::Which,
    step::{Outcome, Step},
    workspace::{Workspace, cargo},
};

use crate::{
    codegen,
    test::{self, Parts},
    tidy,
};

/// Run every check: format, lints, tidy, docs, generated files, dependencies, then `cargo xtask test`
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask ci --mpi mpich")]
pub(crate) struct Options {
    /// MPI to test with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Install missing packages without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let facts = test::facts(options.mpi, options.yes)?;
    let workspace = Workspace::read()?;
    // Lints and docs do not depend on the MPI: the first is enough.
    let mpis = facts.mpis();
    let in_first = |arguments: &[&str]| {
        let mut command = cargo();
        command.args(arguments).current_dir(&workspace.root);
        if let Some(mpi) = mpis.first() {
            mpi.build_with(&mut command, &workspace.target);
        }
        command
    };

    let mut steps = vec![Step::run("format", &mut in_first(&["fmt", "--all", "--check"]))];
    steps.push(Step::of("tidy", || Ok(outcome(tidy::check(&workspace)?, "violation(s)"))));
    let clippy = &mut in_first(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    steps.push(Step::run("clippy", clippy));
    let docs = &mut in_first(&["doc", "--no-deps", "--workspace"]);
    steps.push(Step::run("docs", docs.env("RUSTDOCFLAGS", "-D warnings")));
    if let Some(mpi) = mpis.first() {
        steps.push(Step::of("codegen --check", || {
            Ok(outcome(codegen::stale(&workspace, mpi)?.len(), "file(s) stale: run `cargo xtask codegen`"))
        }));
    }
    steps.push(if succeeds(cargo().args(["deny", "--version"])) {
        // Without advisories, which need a network.
        Step::run("cargo deny", &mut in_first(&["deny", "check", "bans", "licenses", "sources"]))
    } else {
        Step::skipped("cargo deny", "cargo-deny is not installed (cargo install --locked cargo-deny)")
    });
    steps.extend(test::run(&workspace, &facts, Parts { default: true, ..Parts::default() }));
    Ok(test::report(&steps))
}

fn outcome(count: usize, of_what: &str) -> Outcome {
    if count == 0 { Outcome::Passed } else { Outcome::Failed(format!("{count} {of_what}")) }
}
