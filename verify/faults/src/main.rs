//! `cargo xtask faults`: puts faults into jobs of ombx and judges how the jobs end.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod case;
mod cases;
mod judge;
mod left;
mod run;
mod soak;
mod stage;
mod table;

use std::{
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use case::Case;
use clap::Parser as _;
use judge::Verdict;
use ombx_host::since::Since;
use ombx_toolchain::{Failure, Result, Share, Which, Workspace, evidence, exit_code, failed_if, installed};
use signal_hook::{
    consts::{SIGHUP, SIGINT},
    flag::register_conditional_shutdown,
};
use stage::Stage;
use table::Line;

/// Put faults into jobs of ombx and judge how they end
///
/// Each case is a fault at one place of one benchmark. Its job must end before the deadline with the exit code of the fault and
/// one sentence that names it. It must keep the measured rows and leave nothing behind: no process, no file in shared memory, no
/// lock. Prints one line per case and exits with 1 if a case is wrong.
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask faults",
    after_help = "Example: cargo xtask faults --mpi mpich --only 'killed'"
)]
struct Options {
    /// MPI to test [default: every installed one]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Run only cases whose line (fault, place, benchmark) contains all these words, or random jobs of benchmarks with it in their names
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    only: String,
    /// Run only the cases that every change must pass
    #[arg(long)]
    gate: bool,
    /// Run one of several parts of the cases, for example 2/3; with --seed, of cases that are dealt at random
    #[arg(long, value_name = "PART/PARTS")]
    share: Option<Share>,
    /// Print the cases and run none
    #[arg(long)]
    list: bool,
    /// Show the output of jobs of wrong cases
    #[arg(long, short)]
    verbose: bool,
    /// Write the summary to docs/EVIDENCE.md and the full table to target/evidence
    #[arg(long, conflicts_with_all = ["only", "gate", "share", "list"])]
    write: bool,
    /// Run random jobs for this time instead, for example: --soak 10m
    #[arg(long, value_name = "TIME", value_parser = ombx_record::unit::parse_duration, conflicts_with_all = ["gate", "share", "list", "write"])]
    soak: Option<Duration>,
    /// Seed of the random jobs [default: a new one each time], or of a share
    #[arg(long, value_name = "N", conflicts_with = "write")]
    seed: Option<u64>,
    /// Use the existing binary of ombx
    #[arg(long)]
    no_build: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    handle_signals();
    let since = Since::now();
    if let Some(time) = options.soak {
        let stages: Vec<Stage> = installed(options.mpi)?
            .iter()
            .map(|mpi| Stage::set(mpi, &workspace, !options.no_build))
            .collect::<Result<_>>()?;
        if stages.iter().any(|stage| soak::tested(stage, &options.only).is_empty()) {
            return Err(Failure::Usage(format!(
                "no available benchmark has {:?} in its name; `ombx list` prints all",
                options.only
            )));
        }
        return Ok(failed_if(soak::run(
            &stages,
            &options.only,
            time,
            options.seed.unwrap_or_else(|| fastrand::u64(..)),
        )));
    }
    let (mut lines, mut versions) = (Vec::new(), Vec::new());
    let mut listed = 0;
    for mpi in installed(options.mpi)? {
        let stage = Stage { gate: options.gate, ..Stage::set(&mpi, &workspace, !options.no_build)? };
        versions.push(mpi.name());
        let chosen: Vec<Case> = cases::all(&stage)
            .into_iter()
            .filter(|case| case.matches(&options.only) && (case.gate || !options.gate))
            .collect();
        let chosen = match options.share {
            Some(share) => case::shared(chosen, share, options.seed),
            None => chosen,
        };
        let count = chosen.len();
        for (number, case) in (1..).zip(chosen) {
            if options.list {
                println!("{}: {case}", mpi.flavour);
                listed += 1;
                continue;
            }
            let verdict = case.verdict(&stage, options.verbose);
            if matches!(verdict, Verdict::Wrong(_)) || options.verbose {
                println!("   {} {number} of {count}: {case}: {verdict}", mpi.flavour);
            }
            lines.push(Line::new(&case, mpi.flavour, verdict));
        }
    }
    if lines.is_empty() && listed == 0 {
        return Err(Failure::Usage(format!("no case contains {:?}; --list prints all cases", options.only)));
    }
    if options.list {
        return Ok(ExitCode::SUCCESS);
    }
    let sums = table::sums(&lines, since.elapsed());
    let full = table::full(&lines);
    println!("{full}\n{sums}");
    if options.write {
        let [section, tables] = table::pages(&lines, &versions, &sums);
        evidence::write(&workspace, "faults", &section, &tables)?;
    }
    Ok(failed_if(lines.iter().any(Line::is_wrong)))
}

/// Handles SIGINT and SIGHUP. A process that a script starts in the background ignores them, and so would its children; a signal
/// that is handled is reset to its default in children.
fn handle_signals() {
    let always = Arc::new(AtomicBool::new(true));
    for signal in [SIGINT, SIGHUP] {
        let _ = register_conditional_shutdown(signal, 128 + signal, Arc::clone(&always));
    }
}
