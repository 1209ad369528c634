//! `cargo xtask speed`: time from a command to its results, and where that time goes.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod document;
mod start;
mod sweep;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser as _;

use ombx_toolchain::{Result, Which, Workspace, evidence, exit_code, failed_if, installed, machine, named};
use start::{Program, Start};
use sweep::{SUITE, SWEEPS, Swept};

/// Measure how long default sweeps take beside six runs of OMB, and where the time of a launch goes
///
/// Builds ombx with each MPI, and OMB from the sources in --omb, or C programs with the loops and counts of OMB. Runs them in turns.
/// Fails if ombx takes more than a part of the time of OMB. Also measures the start of MPI and `ombx list`. Run nothing else on the machine
/// meanwhile.
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask speed",
    after_help = "Example: cargo xtask speed --omb osu-micro-benchmarks-7.4 --mpi openmpi"
)]
struct Options {
    /// MPI to measure with [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Directory with the sources of OMB
    #[arg(long, value_name = "DIR")]
    omb: Option<PathBuf>,
    /// Turns of each sweep; the ratio has an interval from six on
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    times: u16,
    /// Also run suite:osu once, which takes some minutes
    #[arg(long)]
    suite: bool,
    /// Also build the release binary from scratch, in a separate directory
    #[arg(long)]
    cold_build: bool,
    /// Write the results to docs/EVIDENCE.md, and all tables to target/evidence
    #[arg(long)]
    write: bool,
    /// Only sweeps of benchmarks whose name contains this
    #[arg(
        long,
        value_name = "PATTERN",
        default_value = "",
        hide_default_value = true,
        conflicts_with = "write"
    )]
    bench: String,
    /// Use the existing binary of ombx
    #[arg(long, conflicts_with = "cold_build")]
    no_build: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let chosen = named(&SWEEPS, &options.bench, "benchmark", |sweep| sweep.words[0].to_owned())?;
    let workspace = Workspace::read()?;
    let machine = machine::now();
    let (mut programs, mut starts) = (Vec::new(), Vec::new());
    for mpi in installed(options.mpi)? {
        let cold = options.cold_build.then(|| start::cold_build(&mpi, &workspace)).transpose()?;
        let program = Program::build(&mpi, &workspace, !options.no_build, options.omb.as_deref())?;
        println!("-- {}: starting, {} times", mpi.flavour, options.times);
        starts.push(Start::measure(&program, options.times, cold)?);
        programs.push(program);
    }
    let mut swept: Vec<Swept> = Vec::new();
    for program in &programs {
        swept.extend(chosen.iter().map(|sweep| Swept::new(program.mpi.flavour, sweep)));
    }
    for turn in 1..=options.times {
        for (at, swept) in swept.iter_mut().enumerate() {
            let program = &programs[at / chosen.len()];
            let taken = swept.sweep.measure(program)?;
            let beside =
                swept.sweep.omb.map_or_else(String::new, |beside| format!(" beside {}", beside.command()));
            println!(
                "-- turn {turn}, {}, {}{beside}: {:.3}",
                swept.flavour,
                swept.sweep.command(),
                taken.ratio()
            );
            swept.runs.push(taken);
        }
    }
    for program in programs.iter().filter(|_| options.suite) {
        let runs = vec![SUITE.ombx(program)?];
        swept.push(Swept { runs, ..Swept::new(program.mpi.flavour, &SUITE) });
    }
    for table in [document::sweeps, document::commands, document::phases] {
        println!("\n{}", table(&swept));
    }
    println!("\n{}", document::starts(&starts));
    if options.write {
        let [section, tables] = document::pages(&swept, &starts, &machine);
        evidence::write(&workspace, "speed", &section, &tables)?;
    }
    Ok(failed_if(swept.iter().any(Swept::missed)))
}
