//! Simulated verdicts: of `ombx links`, `ombx history` and `ombx check`.

use std::process::ExitCode;

use clap::Parser;
use ombx_toolchain::{Result, Workspace, failed_if};

use crate::{days, document, history, links};

/// Simulate sweeps over links, series over a year, and daily checks: false verdicts and power, with the code that judges real results
#[derive(Parser)]
#[command(after_help = "Example: cargo xtask coverage verdicts --repetitions 200")]
pub(crate) struct Options {
    /// Simulated results of each kind
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    repetitions: u64,
    /// Seed of the noise
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Write the results to docs/EVIDENCE.md, and the method to target/evidence
    #[arg(long)]
    write: bool,
}

/// Simulates and prints the tables. Fails if a share is certainly outside its goal.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let links = links::simulate(options.repetitions, options.seed);
    let history = history::table(&history::simulate(options.repetitions.div_ceil(10), options.seed));
    let days = days::table(&days::simulate(options.repetitions * 2, options.seed));
    let tables = format!("Links:\n\n{}\nHistory:\n\n{}\nCheck:\n\n{}", links::table(&links), history, days);
    println!("{tables}");
    if options.write {
        let what = format!("{} sweeps of each kind, seed {}", options.repetitions, options.seed);
        document::write(workspace, "coverage-verdicts", &what, &tables, &tables)?;
    }
    Ok(failed_if(links.iter().any(links::Sweeps::failed)))
}
