//! `cargo xtask scale`: start-up, memory and results against the number of ranks, and what follows for large machines.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod document;
mod drawing;
mod job;
mod line;
mod model;
mod programs;

use std::process::ExitCode;

use clap::Parser as _;
use ombx_core::env;

use job::Limits;
use line::{Line, TASKS};
use ombx_toolchain::{
    failure::{Failure, Result, exit_code, failed_if},
    mpi::{Which, installed},
    workspace::Workspace,
};
use programs::Programs;

/// Memory that a rank may need, in bytes: a job that does not fit is not started.
const RANK_NEEDS: u64 = 64 << 20;
/// Run ever wider jobs on this machine: start-up, memory of a rank, size of results, beside a bare MPI program
///
/// Ranks share cores, so that times of messages say nothing here; what ombx adds to start-up and memory does. A number of
/// ranks for which memory does not suffice is left out, and a job that takes too long is ended and told.
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
    /// The MPI; Open MPI's ranks yield their core where they are many
    #[arg(long, value_enum, default_value = "openmpi")]
    mpi: Which,
    /// Seconds after which a job is ended
    #[arg(long, value_name = "S", default_value_t = 240)]
    deadline: u64,
    /// Take ombx as it is built
    #[arg(long)]
    no_build: bool,
    /// Put the result into docs/SCALE.md and docs/scale.svg
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
            let free = env::available_memory().unwrap_or(0);
            if needed > free {
                println!(
                    "   {ranks} ranks: left out, they may need {} MiB and {} are free",
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
        return Err(Failure::Missing("no number of ranks fits into the memory of this machine".into()));
    }
    println!("\n{}\n{}", document::table(&lines), document::model(&model::Constants::of(&lines)));
    if options.write {
        workspace.write("docs/scale.svg", &drawing::draw(&lines))?;
        workspace.write("docs/SCALE.md", &document::page(&lines, &libraries))?;
    }
    let failed = lines.iter().flat_map(|line| &line.tasks).any(|task| !task.complete);
    Ok(failed_if(failed))
}
