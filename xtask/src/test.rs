//! `cargo xtask test`: the tests, with every MPI of the machine, each built in its own target directory.

use std::process::{Command, ExitCode};

use ombx_toolchain::{
    failure::{Failure, Result, failed_if},
    mpi::{Mpi, Which},
    release,
    step::{Outcome, Step, Summary},
    tally::Tally,
    workspace::{Package, Workspace, cargo},
};

use crate::{
    codegen, delegate,
    setup::{self, Facts},
};

/// Package of integration tests.
const TESTS: &str = "ombx-tests";
/// Package whose unit tests call MPI: those of the other packages pass or fail with every MPI alike.
const BINDINGS: &str = "ombx-mpi";
/// Integration tests that take part in the default run.
const INTEGRATION: [&str; 5] = ["cli", "report", "ranks", "sockets", "rank_harness"];
/// Integration tests on ranks: by default these alone run with a second MPI.
const ON_RANKS: [&str; 2] = ["ranks", "rank_harness"];
/// Tests of the command line that try every wrong value of every option.
const LONG: &str = "mistakes_in_options";
/// Integration tests that `--all` runs with a second MPI.
const OF_MPI: [&str; 3] = ["cli", "ranks", "rank_harness"];
/// Parts of the names of tests whose result does not depend on the MPI: they run with the first one.
const OF_FIRST: [&str; 4] = ["mistakes", "reframe", "history::", "monitoring::"];
/// Tests between hosts that depend on the MPI or its launcher.
const HOSTS_OF_MPI: [&str; 8] = [
    "broadcast::four_hosts_broadcast_long",
    "congestion::",
    "failures::",
    "network::",
    "slurm::",
    "smoke::links",
    "verdicts::one_of",
    "verdicts::one_slow_host",
];

/// Run the tests, with every installed MPI
///
/// By default: unit tests, tests of the command line, of ranks and of sockets, and the faults that every change must pass. That
/// takes about 15 minutes on 2 cores for both MPIs. Tests between hosts are left out; --all runs them too. Each MPI has a
/// separate target directory: target/mpich, target/openmpi.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask test --mpi mpich\n  cargo xtask test --all --yes")]
pub(crate) struct Options {
    /// MPI to test with [default: all; one that is missing and may not be installed is reported and left out]
    #[arg(long, value_enum)]
    pub(crate) mpi: Option<Which>,
    /// Install missing packages without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only the first MPI, and no documentation tests
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run the tests between hosts too, last: 10 minutes per MPI, as root
    #[arg(long, conflicts_with = "quick")]
    pub(crate) all: bool,
    /// Run only the tests between hosts
    #[arg(long, conflicts_with_all = ["quick", "all"])]
    pub(crate) hosts: bool,
}

/// Parts of the tests that are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Everything but the tests between hosts.
    pub(crate) default: bool,
    pub(crate) hosts: bool,
    /// Only the first MPI, without documentation tests.
    pub(crate) quick: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let facts = facts(options.mpi, options.yes)?;
    let parts = Parts { default: !options.hosts, hosts: options.hosts || options.all, quick: options.quick };
    Ok(report(&run(&Workspace::read()?, &facts, parts)))
}

/// Prints the summary, with the counts alone on the last line, and returns the exit code.
pub(crate) fn report(steps: &[Step]) -> ExitCode {
    // A step that failed and counts no tests is one failure.
    let uncounted = steps.iter().filter(|step| step.failed() && step.tally.failed == 0).count();
    let mut tally: Tally = steps.iter().map(|step| step.tally).sum();
    tally.failed += uncounted as u64;
    println!("\n{}", Summary(steps));
    let left_out: Vec<&Step> =
        steps.iter().filter(|step| matches!(step.outcome, Outcome::Skipped(_))).collect();
    if !left_out.is_empty() {
        println!("Left out:");
    }
    for step in left_out {
        if let Outcome::Skipped(why) = &step.outcome {
            println!("  {}: {why}", step.what);
        }
    }
    if tally.skipped > 0 {
        println!(
            "{} tests were skipped on this machine; each printed the reason (`skipped: ..`).",
            tally.skipped
        );
    }
    println!("{tally}");
    failed_if(steps.iter().any(Step::failed))
}

/// Returns what can be tested here, after the setup that was asked for.
pub(crate) fn facts(mpi: Option<Which>, yes: bool) -> Result<Facts> {
    let flavours = mpi.unwrap_or(Which::All).flavours();
    match setup::ensure(flavours, yes) {
        // No MPI was named and one is installed: test it, and report the missing one.
        Err(Failure::NotInstalled(why)) if mpi.is_none() && !yes => {
            let facts = Facts::gather(flavours);
            if !facts.suffice() {
                return Err(Failure::NotInstalled(why));
            }
            println!("Continuing without the missing packages: {why}.");
            Ok(facts)
        }
        done => done,
    }
}

/// Runs all steps, also after a failure.
pub(crate) fn run(workspace: &Workspace, facts: &Facts, parts: Parts) -> Vec<Step> {
    let mpis = facts.mpis();
    let tested = if parts.quick { &mpis[..mpis.len().min(1)] } else { &mpis[..] };
    let runs: Vec<Run<'_>> = tested
        .iter()
        .enumerate()
        .map(|(at, mpi)| Run { workspace, mpi, first: at == 0, all: parts.hosts, quick: parts.quick })
        .collect();
    let mut steps = Vec::new();
    if parts.default {
        steps.push(Step::count("without MPI", &mut without_mpi(workspace, parts.quick)));
    }
    let mut built = Vec::new();
    for run in &runs {
        println!("\n== {}", run.mpi);
        let build = run.build();
        let failed = build.failed();
        steps.push(build);
        if failed {
            let tally = Tally { failed: 1, ..Tally::default() };
            let skipped = Step::skipped(run.name("tests"), "ombx was not built");
            steps.push(Step { tally, ..skipped });
            continue;
        }
        built.push(run);
        if parts.default {
            steps.extend(run.default());
        }
    }
    for run in built {
        steps.push(match parts.hosts {
            true => run.hosts(),
            false => Step::skipped(
                run.name("tests between hosts"),
                "10 minutes, as root with `cargo xtask setup --testbed`: run `cargo xtask test --hosts`",
            ),
        });
    }
    if parts.default && !parts.hosts && !parts.quick {
        let why = "1 minute each: run `cargo xtask test --all`";
        steps.push(Step::skipped(
            format!("tests {LONG}; most OSU names under a launcher; the command line with a second MPI"),
            why,
        ));
    }
    let others = mpis.iter().skip(tested.len());
    steps.extend(others.map(|mpi| Step::skipped(mpi.flavour.to_string(), "--quick: run `cargo xtask test`")));
    for (flavour, _) in facts.absent() {
        steps.push(Step::skipped(flavour.to_string(), "not installed: run `cargo xtask setup`"));
    }
    steps
}

/// Tests with one MPI.
struct Run<'a> {
    workspace: &'a Workspace,
    mpi: &'a Mpi,
    /// Whether it is the first MPI: tests that no MPI can change run with it alone.
    first: bool,
    /// Whether `--all` was given.
    all: bool,
    quick: bool,
}

impl Run<'_> {
    fn name(&self, what: &str) -> String {
        format!("{} {}: {what}", self.mpi.flavour, self.mpi.version)
    }

    fn build(&self) -> Step {
        let name = self.name("build");
        Step::of(name, || release::built_for_tests(self.mpi, self.workspace).map(|_| Outcome::Passed))
    }

    fn default(&self) -> Vec<Step> {
        let chosen = |package: &Package| match self.first {
            true => self.workspace.needs_mpi(package) && package.name != TESTS,
            false => package.name == BINDINGS,
        };
        let packages = packages(self.workspace, chosen);
        // One at a time: ranks spin while they wait, so that two jobs on the same cores starve each other.
        let one_by_one = ["--", "--test-threads=1"];
        let unit = Step::count(self.name("unit tests"), self.test(&packages).args(one_by_one));
        let mut tests = self.test(&[TESTS]);
        let chosen = match (self.first, self.all) {
            (true, _) => &INTEGRATION[..],
            (false, true) => &OF_MPI,
            (false, false) => &ON_RANKS,
        };
        tests.args(chosen.iter().flat_map(|test| ["--test", test])).args(one_by_one);
        match (self.first, self.all) {
            (true, true) => {}
            (true, false) => drop(tests.args(["--skip", LONG])),
            (false, _) => drop(tests.args(OF_FIRST.iter().flat_map(|name| ["--skip", name]))),
        }
        let tests = Step::count(self.name("tests"), &mut tests);
        let mut faults = delegate::run("ombx-faults");
        faults.args(["--gate", "--no-build", "--mpi", self.mpi.flavour.key()]);
        faults.current_dir(&self.workspace.root).env("CARGO_TARGET_DIR", &self.workspace.target);
        let mut steps = vec![unit, tests, Step::run(self.name("faults"), &mut faults)];
        if self.first {
            steps.push(Step::of("generated files", || {
                let stale = codegen::stale(self.workspace, self.mpi)?.len();
                let why = format!("{stale} file(s) stale: run `cargo xtask codegen`");
                Ok(if stale == 0 { Outcome::Passed } else { Outcome::Failed(why) })
            }));
        }
        if self.first && !self.quick {
            let mut instructions = delegate::run("ombx-fidelity");
            instructions.args(["--instructions", "--sample", "--mpi", self.mpi.flavour.key()]);
            instructions.current_dir(&self.workspace.root).env("CARGO_TARGET_DIR", &self.workspace.target);
            steps.push(Step::run(self.name("instructions of timed loops"), &mut instructions));
        }
        steps
    }

    fn hosts(&self) -> Step {
        let mut tests = self.test(&[TESTS]);
        tests.args(["--test", "hosts", "--", "--test-threads=1"]);
        if !self.first {
            tests.args(HOSTS_OF_MPI);
        }
        Step::count(self.name("tests between hosts"), &mut tests)
    }

    /// Returns `cargo test` for packages, with this MPI, its launcher and its build of ombx.
    fn test(&self, packages: &[&str]) -> Command {
        let mut command = cargo_test(self.workspace, packages, self.quick && packages != [TESTS]);
        let target = &self.workspace.target;
        self.mpi.build_with(&mut command, target);
        self.mpi.launch_with(&mut command);
        command.env("OMBX_BIN", self.mpi.target(target).join("debug/ombx"));
        if self.all {
            command.env("OMBX_TEST_ALL", "1");
        }
        if let Ok(own) = std::env::current_exe() {
            command.env("OMBX_XTASK", own);
        }
        command
    }
}

/// Tests of the packages that link no MPI, in the target directory of xtask, which has built some of them already.
fn without_mpi(workspace: &Workspace, quick: bool) -> Command {
    cargo_test(workspace, &packages(workspace, |package| !workspace.needs_mpi(package)), quick)
}

fn cargo_test(workspace: &Workspace, packages: &[&str], without_documentation: bool) -> Command {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]).args(packages.iter().flat_map(|package| ["-p", package]));
    if without_documentation {
        command.args(["--lib", "--bins", "--tests"]);
    }
    command.env("CARGO_TARGET_DIR", &workspace.target).current_dir(&workspace.root);
    command
}

/// Names of the packages that fulfil a condition.
fn packages(workspace: &Workspace, condition: impl Fn(&Package) -> bool) -> Vec<&str> {
    workspace.packages.iter().filter(|package| condition(package)).map(|package| &*package.name).collect()
}

#[cfg(test)]
mod tests {
    use ombx_toolchain::{command::shown, mpi::Flavour};

    use super::*;

    #[test]
    fn a_test_gets_its_binary_and_its_launcher() {
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages: Vec::new() };
        let mpi = Mpi {
            flavour: Flavour::Mpich,
            mpicc: "mpicc.mpich".into(),
            mpiexec: "mpiexec.mpich".into(),
            version: "4".into(),
        };
        let run = Run { workspace: &workspace, mpi: &mpi, first: true, all: false, quick: true };
        let shown = shown(&run.test(&["ombx-mpi"]));
        for part in [
            "OMBX_BIN=/w/target/mpich/debug/ombx",
            "OMBX_MPIEXEC=mpiexec.mpich",
            "CARGO_TARGET_DIR=/w/target/mpich",
            "-p ombx-mpi",
            "--no-fail-fast",
            "--lib",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn a_failed_step_fails_the_run() {
        let failed = Step::run("t", &mut Command::new("/nonexistent/program"));
        assert_eq!(report(&[failed]), ExitCode::FAILURE);
        assert_eq!(report(&[Step::skipped("t", "no need")]), ExitCode::SUCCESS);
    }

    #[test]
    fn every_integration_test_belongs_to_a_part() {
        let manifest = include_str!("../../tests/Cargo.toml");
        let names = manifest.split("[[test]]\nname = \"").skip(1).filter_map(|rest| rest.split('"').next());
        let names: Vec<&str> = names.collect();
        let known = |name: &&str| INTEGRATION.contains(name) || *name == "hosts";
        assert!(!names.is_empty() && names.iter().all(known), "{names:?}");
    }
}
