//! `cargo xtask scale`: start-up, memory and results against the number of ranks, extrapolated to large machines.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod document;
mod job;
mod line;
mod model;
mod programs;
mod simulated;
mod start;

use std::process::ExitCode;

use clap::Parser as _;
use ombx_core::system::limits::FreeMemory;

use job::{Limits, Outcome};
use line::{Line, OVER_SOCKETS, SOCKET_RANKS, TASKS};
use ombx_toolchain::{
    failure::{Failure, Result, exit_code, failed_if},
    mpi::{Which, installed},
    workspace::Workspace,
};
use programs::Programs;
use start::Starts;

/// Memory reserved for a rank, in bytes: a job that does not fit is not started.
const RANK_NEEDS: u64 = 64 << 20;
const NONE_FITS: &str = "no number of ranks fits into memory; choose fewer with --ranks";

/// Measure start-up, memory of a rank and size of results for more and more ranks: over MPI, over sockets, and simulated
///
/// Ranks share cores, so that times of messages have no meaning here. Numbers of ranks that do not fit into memory are left out. A
/// job that exceeds the deadline is ended and reported.
#[derive(clap::Parser)]
#[command(
    name = "cargo xtask scale",
    bin_name = "cargo xtask scale",
    after_help = "Example: cargo xtask scale --ranks 2,8,32 --deadline 60"
)]
struct Options {
    /// Numbers of ranks
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "2,4,8,16,32,64,128",
        default_value_if("start", "true", "2,16,128"), value_parser = clap::value_parser!(u32).range(2..=4096))]
    ranks: Vec<u32>,
    /// MPI; many ranks of Open MPI yield their core
    #[arg(long, value_enum, default_value = "openmpi", default_value_if("start", "true", "all"))]
    mpi: Which,
    /// Measure only what `ombx run` adds to an empty MPI program
    #[arg(long)]
    start: bool,
    /// Turns of both programs with --start
    #[arg(long, value_name = "N", default_value_t = 7, requires = "start", value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: u16,
    /// Deadline of a job, in seconds
    #[arg(long, value_name = "S", default_value_t = 240)]
    deadline: u64,
    /// Use the existing binary of ombx
    #[arg(long)]
    no_build: bool,
    /// Leave out the ranks over MPI and the bare program
    #[arg(long)]
    without_mpi: bool,
    /// Sweeps over simulated ranks [default: six, of up to 100,000 ranks]
    #[arg(long, value_name = "RANKS@HOSTSxROUNDS,..", value_delimiter = ',', default_values_t = simulated::SHAPES, hide_default_value = true)]
    shapes: Vec<simulated::Shape>,
    /// Sweep over simulated ranks in this process, as the program does in processes of its own
    #[arg(long, value_name = "SHAPE", hide = true)]
    sweep: Option<simulated::Shape>,
    /// Write the results to docs/EVIDENCE.md, and all tables to target/evidence
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    if let Some(shape) = options.sweep {
        return simulated::print(shape).map(|()| ExitCode::SUCCESS);
    }
    let workspace = Workspace::read()?;
    if options.start {
        return starts(options, &workspace);
    }
    let (mut lines, mut libraries, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for mpi in installed(Some(options.mpi))? {
        let flavour = mpi.flavour;
        libraries.push(format!("{flavour} {}", mpi.version));
        let programs = Programs::build(mpi, &workspace, !options.no_build)?;
        for &ranks in options.ranks.iter().filter(|ranks| !options.without_mpi && fits(**ranks)) {
            lines.push(over_mpi(&programs, Limits { seconds: options.deadline, ranks })?);
        }
        if sessions.is_empty() {
            sessions = over_sockets(&programs, options.deadline)?;
        }
    }
    if lines.is_empty() && !options.without_mpi {
        return Err(Failure::Missing(NONE_FITS.into()));
    }
    let mut swept = Vec::new();
    for &shape in &options.shapes {
        let one = simulated::in_a_process(shape)?;
        println!("   simulated, {shape}: {:.1} s of CPU time, {} MiB", one.cpu_seconds, one.peak_bytes >> 20);
        swept.push(one);
    }
    println!("\n{}\n{}", document::sessions(&sessions), document::simulated(&swept));
    if !options.without_mpi {
        println!("{}\n{}", document::table(&lines), document::model(&model::Constants::of(&lines)));
    }
    if options.write {
        document::write(&workspace, "scale-sockets", &document::sessions(&sessions))?;
        document::write(&workspace, "scale-simulated", &document::simulated(&swept))?;
        if !options.without_mpi {
            document::write_over_mpi(&workspace, &lines, &libraries)?;
        }
    }
    let incomplete =
        lines.iter().flat_map(|line| &line.tasks).chain(sessions.iter().map(|(_, outcome)| outcome));
    let failed = incomplete.filter(|outcome| !outcome.complete).count() > 0;
    Ok(failed_if(failed || swept.iter().any(|swept| !swept.verdict_is_right)))
}

/// Measures the start of jobs. Fails if ombx adds more than it may.
fn starts(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let mut all = Vec::new();
    for mpi in installed(Some(options.mpi))? {
        let programs = Programs::build(mpi, workspace, !options.no_build)?;
        for &ranks in options.ranks.iter().filter(|ranks| fits(**ranks)) {
            all.push(start::measure(&programs, Limits { seconds: options.deadline, ranks }, options.turns)?);
        }
    }
    if all.is_empty() {
        return Err(Failure::Missing(NONE_FITS.into()));
    }
    println!("{}", start::document(&all));
    if options.write {
        document::write(workspace, "scale-start", &start::document(&all))?;
    }
    Ok(failed_if(all.iter().any(Starts::missed)))
}

/// Returns whether this many ranks fit into memory, and prints if they do not.
fn fits(ranks: u32) -> bool {
    let needed = u64::from(ranks) * RANK_NEEDS;
    let free = FreeMemory::here().map_or(0, |free| free.bytes);
    if needed > free {
        println!(
            "   {ranks} ranks: left out, {} MiB of memory needed, {} MiB free",
            needed >> 20,
            free >> 20
        );
    }
    needed <= free
}

/// Measures every job on a number of ranks.
fn over_mpi(programs: &Programs, limits: Limits) -> Result<Line> {
    let (flavour, ranks) = (programs.mpi.flavour, limits.ranks);
    let mut line = Line { flavour, ranks, bare: job::bare(programs, &["stay"], limits)?, tasks: Vec::new() };
    for (name, words) in TASKS {
        let outcome = job::ombx(programs, words, limits)?;
        println!("   {flavour}, {ranks} ranks, {name}: {outcome}");
        line.tasks.push(outcome);
    }
    Ok(line)
}

/// Measures a sample of the links between ranks over sockets.
fn over_sockets(programs: &Programs, seconds: u64) -> Result<Vec<(u32, Outcome)>> {
    let mut sessions = Vec::new();
    for ranks in SOCKET_RANKS {
        let outcome = job::ombx(programs, &OVER_SOCKETS, Limits { seconds, ranks })?;
        println!("   sockets, {ranks} ranks: {outcome}");
        sessions.push((ranks, outcome));
    }
    Ok(sessions)
}
