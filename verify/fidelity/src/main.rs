//! `cargo xtask fidelity`: timed loops of ombx against plain C loops that make the same calls, in time and in instructions.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod callgrind;
mod comparison;
mod document;
mod paired;
mod profile;
mod ratio;
mod sockets;

use std::{fs, process::ExitCode, time::Duration};

use clap::Parser as _;

use ombx_toolchain::{
    failure::{Failure, Result, exit_code, failed_if},
    mpi::{Which, installed},
    workspace::Workspace,
};

use callgrind::Rows;
use comparison::Comparison;
use document::Circumstances;
use paired::Paired;
use ratio::Verdict;

const DOCUMENT: &str = "docs/FIDELITY.md";

/// Compare the timed loops of ombx with plain C loops
///
/// One MPI program contains both. For each case it alternates blocks of both loops in random order on the same communicator,
/// buffers, windows and requests. Prints the ratio of their times with its interval over launches, and fails if an interval lies
/// above its goal. `--instructions` counts instructions instead, which do not depend on the load of the machine.
#[derive(clap::Parser)]
#[command(
    name = "cargo xtask fidelity",
    bin_name = "cargo xtask fidelity",
    after_help = "Example: cargo xtask fidelity --mpi mpich --row p2p"
)]
pub(crate) struct Options {
    /// MPI to compare with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Run only rows whose name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    row: String,
    /// Launches of every row; rows that are not resolved get more
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(6..=100))]
    launches: u64,
    /// Time of a row in a launch, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    row_time: u64,
    /// Time limit for the launches of rows that are not resolved after the first ones
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// Count instructions of a sample of rows with callgrind, and measure no times
    #[arg(long, conflicts_with_all = ["sockets", "launches", "row_time", "minutes", "slowed"])]
    instructions: bool,
    /// With --instructions: count only a sample of rows, with tighter goals
    #[arg(long, requires = "instructions", conflicts_with_all = ["row", "write"])]
    sample: bool,
    /// Compare two kernels that are slower on purpose, and succeed if the comparison finds both
    #[arg(long, conflicts_with_all = ["row", "sockets", "write"])]
    slowed: bool,
    /// Compare the benchmarks over sockets, also with iperf3 and sockperf if they are installed
    #[arg(long, conflicts_with_all = ["mpi", "row"])]
    sockets: bool,
    /// Write the results to docs/FIDELITY.md
    #[arg(long, conflicts_with_all = ["row", "mpi"])]
    write: bool,
    /// Use the existing binaries
    #[arg(long)]
    no_build: bool,
    /// Seed of all random orders
    #[arg(long, value_name = "SEED", default_value_t = 2012)]
    seed: u64,
}

impl Options {
    fn limit(&self) -> Duration {
        Duration::from_secs(60 * self.minutes)
    }
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    if options.sockets {
        return sockets::main(options, &workspace);
    }
    let build = |mpi| Paired::build(mpi, &workspace, !options.no_build);
    let programs = installed(options.mpi)?.iter().map(build).collect::<Result<Vec<_>>>()?;
    if options.instructions {
        return count(options, &workspace, &programs);
    }
    let about = Circumstances::now(options.seed);
    println!("\n-- {} launches on {}", options.launches, about.machine);
    let mut compared: Vec<Comparison<'_>> = programs.iter().map(Comparison::of).collect();
    comparison::run(&mut compared, options)?;
    let text = document::times(&compared);
    println!("\n{text}");
    if options.write {
        let heading = about.heading(compared.iter().map(|one| one.library.as_str()));
        renew(&workspace, |page| document::with_times(page, &format!("{heading}\n\n{text}")))?;
    }
    if options.slowed {
        let found = |one: &Comparison<'_>| one.rows.iter().all(|row| row.verdict() == Verdict::Missed);
        return Ok(failed_if(!compared.iter().all(found)));
    }
    Ok(failed_if(compared.iter().any(|one| one.failed() > 0)))
}

/// Counts the instructions of both sides, and those of kernels that are slower on purpose, which must miss their goal.
fn count(options: &Options, workspace: &Workspace, programs: &[Paired]) -> Result<ExitCode> {
    if let Some(why) = callgrind::unavailable() {
        println!("instructions: skipped, {why}");
        return Ok(ExitCode::SUCCESS);
    }
    let (mut text, mut missed) = (String::new(), 0);
    let rows = if options.sample { Rows::Sample } else { Rows::Named(&options.row) };
    for paired in programs {
        let counts = callgrind::count(paired, rows)?;
        missed += counts.iter().filter(|(_, count)| !count.faults().is_empty()).count();
        let slowed = callgrind::count(paired, Rows::Slowed)?;
        missed += slowed.iter().filter(|(_, count)| count.faults().is_empty()).count();
        let [counts, slowed] = [counts, slowed].map(|counts| callgrind::table_of(&counts));
        text += &format!(
            "### {}\n\n{counts}\nSlowed on purpose, which must be missed:\n\n{slowed}\n",
            paired.mpi.flavour
        );
    }
    println!("{text}");
    if options.write {
        renew(workspace, |page| document::with_instructions(page, &text))?;
    }
    Ok(failed_if(missed > 0))
}

/// Changes docs/FIDELITY.md.
fn renew(workspace: &Workspace, change: impl FnOnce(&str) -> String) -> Result<()> {
    let path = workspace.root.join(DOCUMENT);
    let page = fs::read_to_string(&path).map_err(Failure::file(&path))?;
    workspace.write(DOCUMENT, &change(&page))
}
