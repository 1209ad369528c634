//! Simulated verdicts: of `ombx links`, `ombx history` and `ombx check`.

use std::process::ExitCode;

use clap::Parser;
use ombx_toolchain::{
    failure::{Result, failed_if},
    workspace::Workspace,
};

use crate::{days, history, links};

/// The page of the results.
const PAGE: &str = "docs/VERDICTS.md";

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
    /// Write docs/VERDICTS.md
    #[arg(long)]
    write: bool,
}

/// Simulates and prints the tables. Fails if a share is certainly outside its goal.
pub(crate) fn main(options: &Options, workspace: &Workspace) -> Result<ExitCode> {
    let links = links::simulate(options.repetitions, options.seed);
    println!("{}", links::table(&links));
    let history = history::table(&history::simulate(options.repetitions.div_ceil(10), options.seed));
    println!("{history}");
    let days = days::table(&days::simulate(options.repetitions * 2, options.seed));
    println!("{days}");
    if options.write {
        let date = ombx_core::system::environment::timestamp();
        let page = format!(
            include_str!("verdicts.md"),
            date = date,
            links = links::table(&links),
            history = history,
            days = days
        );
        workspace.write(PAGE, &page)?;
    }
    Ok(failed_if(links.iter().any(links::Sweeps::failed)))
}
