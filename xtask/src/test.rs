//! `cargo xtask test`: every test, with every MPI of the machine, each built apart from the other.

use std::process::{Command, ExitCode};

use crate::{
    failure::{Failure, Result},
    mpi::{Mpi, Which},
    setup::{self, Facts},
    step::{Step, Summary},
    tally::Tally,
    workspace::{Workspace, cargo},
};

/// Packages that no MPI can change: tested once. All others are tested with each MPI.
const DEAF_TO_MPI: &[&str] =
    &["ombx-core", "ombx-results", "ombx-links", "ombx-sockets", "ombx-report", "xtask"];

/// The package of integration tests.
const TESTS: &str = "ombx-tests";
/// Tests between hosts in which an MPI or its launcher takes part.
const ON_HOSTS: [&str; 7] =
    ["failures::", "network::", "slurm::", "smoke::links", "truth::a_broadcast", "verdicts::one", "ways::"];

/// Run all tests, with every MPI that is there
///
/// Each MPI gets a target directory of its own (target/mpich, target/openmpi; under CARGO_TARGET_DIR if that is
/// set). Tests on ranks run one after another, since ranks that share cores with other ranks time out.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask test --mpi mpich")]
pub(crate) struct Options {
    /// The MPI to test with [default: all; one that is missing and may not be installed is reported and left out]
    #[arg(long, value_enum)]
    pub(crate) mpi: Option<Which>,
    /// Install what is missing without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only the first MPI found, and no documentation tests
    #[arg(long)]
    pub(crate) quick: bool,
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let facts = facts(options)?;
    let steps = run(&Workspace::read()?, &facts, options.quick);
    Ok(report(&steps))
}

/// The summary, with the counts alone on the last line, and the exit code.
pub(crate) fn report(steps: &[Step]) -> ExitCode {
    // A step that failed and counts no tests is one failure.
    let uncounted = steps.iter().filter(|step| step.failed() && step.tally.failed == 0).count();
    let mut tally: Tally = steps.iter().map(|step| step.tally).sum();
    tally.failed += uncounted as u64;
    println!("\n{}\n{tally}", Summary(steps));
    if steps.iter().any(Step::failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What can be tested here, after the setup that was asked for.
pub(crate) fn facts(options: &Options) -> Result<Facts> {
    let flavours = options.mpi.unwrap_or(Which::All).flavours();
    match setup::ensure(flavours, options.yes) {
        // Nobody named an MPI, and there is one: test what is there and say what is not.
        Err(Failure::NotInstalled(why)) if options.mpi.is_none() && !options.yes => {
            let facts = setup::Facts::gather(flavours);
            if !facts.suffice() {
                return Err(Failure::NotInstalled(why));
            }
            println!("Going on with what is there: {why}.");
            Ok(facts)
        }
        done => done,
    }
}

/// Runs everything, whatever fails on the way.
pub(crate) fn run(workspace: &Workspace, facts: &Facts, quick: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let (deaf, listening): (Vec<&str>, Vec<&str>) = workspace
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .partition(|name| DEAF_TO_MPI.contains(name));
    let mpis = facts.mpis();
    let first = mpis.first().map(|mpi| mpi.flavour);
    for mpi in mpis {
        let name = format!("{} {}", mpi.flavour, mpi.version);
        if quick && Some(mpi.flavour) != first {
            steps.push(Step::skipped(name, "--quick"));
            continue;
        }
        println!("\n== {mpi}");
        let mut build = cargo();
        build.args(["build", "-p", "ombx-cli"]);
        prepare(&mut build, workspace, &mpi);
        let built = Step::run(format!("{name}: build"), &mut build);
        let failed = built.failed();
        steps.push(built);
        if Some(mpi.flavour) == first {
            steps.push(Step::count("without MPI", &mut cargo_test(workspace, &mpi, &deaf, quick)));
        }
        if failed {
            let tally = Tally { failed: 1, ..Tally::default() };
            steps.push(Step { tally, ..Step::skipped(format!("{name}: tests"), "ombx was not built") });
            continue;
        }
        // One at a time: ranks spin while they wait, so that two jobs on the same cores starve each other.
        let one_by_one = ["--", "--test-threads=1"];
        if Some(mpi.flavour) == first {
            let mut tests = cargo_test(workspace, &mpi, &listening, quick);
            steps.push(Step::count(format!("{name}: tests"), tests.args(one_by_one)));
            steps.push(faults(workspace, &mpi, &name));
            continue;
        }
        // What no MPI can change was tested with the first.
        let others: Vec<&str> = listening.iter().copied().filter(|name| *name != TESTS).collect();
        let mut tests = cargo_test(workspace, &mpi, &others, quick);
        steps.push(Step::count(format!("{name}: unit tests"), tests.args(one_by_one)));
        let mut tests = cargo_test(workspace, &mpi, &[TESTS], quick);
        tests.args(["--test", "cli", "--test", "ranks", "--test", "rank_harness"]).args(one_by_one);
        tests.args(["--skip", "mistakes"]);
        steps.push(Step::count(format!("{name}: tests"), &mut tests));
        let mut tests = cargo_test(workspace, &mpi, &[TESTS], quick);
        tests.args(["--test", "hosts"]).args(one_by_one).args(ON_HOSTS);
        steps.push(Step::count(format!("{name}: tests between hosts"), &mut tests));
        steps.push(faults(workspace, &mpi, &name));
    }
    for (flavour, _) in facts.absent() {
        steps.push(Step::skipped(flavour.to_string(), "not installed (cargo xtask setup)"));
    }
    steps
}

/// Those faults that every change has to pass, by this program itself.
fn faults(workspace: &Workspace, mpi: &Mpi, name: &str) -> Step {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.args(["faults", "--gate", "--no-build", "--mpi", mpi.flavour.key()]).current_dir(&workspace.root);
    // The workspace's own directory: this program finds that of the MPI below it.
    command.env("CARGO_TARGET_DIR", &workspace.target);
    Step::run(format!("{name}: faults"), &mut command)
}

fn cargo_test(workspace: &Workspace, mpi: &Mpi, packages: &[&str], quick: bool) -> Command {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]);
    for package in packages {
        command.args(["-p", package]);
    }
    if quick {
        command.args(["--lib", "--bins", "--tests"]);
    }
    prepare(&mut command, workspace, mpi);
    command
}

fn prepare(command: &mut Command, workspace: &Workspace, mpi: &Mpi) {
    mpi.build_with(command, &workspace.target);
    mpi.launch_with(command);
    command.env("OMBX_BIN", mpi.target(&workspace.target).join("debug/ombx")).current_dir(&workspace.root);
    if let Ok(own) = std::env::current_exe() {
        command.env("OMBX_XTASK", own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::Flavour;

    fn mpi() -> Mpi {
        Mpi {
            flavour: Flavour::Mpich,
            mpicc: "mpicc.mpich".into(),
            mpiexec: "mpiexec.mpich".into(),
            version: "4".into(),
        }
    }

    #[test]
    fn a_test_knows_its_binary_and_its_launcher() {
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages: Vec::new() };
        let command = cargo_test(&workspace, &mpi(), &["ombx-mpi"], true);
        let shown = crate::step::shown(&command);
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
}
