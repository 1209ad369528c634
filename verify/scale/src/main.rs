//! `cargo xtask scale`: start-up, memory and results against the number of ranks, extrapolated to large machines.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod document;
mod drawing;
mod job;
mod line;
mod model;
mod programs;

use std::process::ExitCode;

use clap::Parser as _;
use ombx_core::system::environment;

use job::Limits;
use line::{Line, TASKS};
use ombx_toolchain::{
    failure::{Failure, Result, exit_code, failed_if},
    mpi::{Which, installed},
    workspace::Workspace,
};
use programs::Programs;

/// Memory reserved for a rank, in bytes: a job that does not fit is not started.
const RANK_NEEDS: u64 = 64 << 20;
/// Measure start-up, memory of a rank and size of results for more and more ranks, beside a bare MPI program
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
        value_parser = clap::value_parser!(u32).range(2..=4096))]
    ranks: Vec<u32>,
    /// MPI; many ranks of Open MPI yield their core
    #[arg(long, value_enum, default_value = "openmpi")]
    mpi: Which,
    /// Deadline of a job, in seconds
    #[arg(long, value_name = "S", default_value_t = 240)]
    deadline: u64,
    /// Use the existing binary of ombx
    #[arg(long)]
    no_build: bool,
    /// Write docs/SCALE.md and docs/scale.svg
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let (mut lines, mut libraries) = (Vec::new(), Vec::new());
    for mpi in installed(Some(options.mpi))? {
        let flavour = mpi.flavour;
        libraries.push(format!("{flavour} {}", mpi.version));
        let programs = Programs::build(mpi, &workspace, !options.no_build)?;
        for &ranks in &options.ranks {
            let needed = u64::from(ranks) * RANK_NEEDS;
            let free = environment::available_memory().unwrap_or(0);
            if needed > free {
                println!(
                    "   {ranks} ranks: left out, {} MiB of memory needed, {} MiB free",
                    needed >> 20,
                    free >> 20
                );
                continue;
            }
            let limits = Limits { seconds: options.deadline, ranks };
            let mut line = Line { flavour, ranks, bare: job::bare(&programs, limits)?, tasks: Vec::new() };
            for (name, words) in TASKS {
                let outcome = job::ombx(&programs, words, limits)?;
                println!("   {flavour}, {ranks} ranks, {name}: {outcome}");
                line.tasks.push(outcome);
            }
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return Err(Failure::Missing(
            "no number of ranks fits into memory; choose fewer with --ranks".into(),
        ));
    }
    println!("\n{}\n{}", document::table(&lines), document::model(&model::Constants::of(&lines)));
    if options.write {
        workspace.write("docs/scale.svg", &drawing::draw(&lines))?;
        workspace.write("docs/SCALE.md", &document::page(&lines, &libraries))?;
    }
    let failed = lines.iter().flat_map(|line| &line.tasks).any(|task| !task.complete);
    Ok(failed_if(failed))
}
