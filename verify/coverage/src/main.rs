//! `cargo xtask coverage`: how often intervals hold the true median, for simulated noise and for launches on this machine.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod document;
mod drawing;
mod launches;
mod line;
mod pairs;

use std::{fs, process::ExitCode};

use clap::Parser as _;
use ombx_core::{
    measure::plan::Plan,
    testkit::coverage::{self, MODELS, Model},
};

use ombx_toolchain::{
    failure::{Failure, Result, exit_code, failed_if},
    mpi::{Flavour, Mpi, Places},
    workspace::Workspace,
};

use line::{Line, Verdict};

/// Count how often the interval of a row holds the true median of simulated noise, or the row has a mark
///
/// The code that measures real rows measures these, with the default precision and time. Only the time of an iteration is drawn
/// from a model. Fails if rows without a mark certainly miss the true median more than 7 times in 100.
#[derive(clap::Parser)]
#[command(
    name = "cargo xtask coverage",
    bin_name = "cargo xtask coverage",
    after_help = "Example: cargo xtask coverage --rows 500 --model bimodal"
)]
struct Options {
    /// Rows per model
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rows: u64,
    /// Simulate only models whose family or name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    model: String,
    /// Seed of the noise
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seed: u64,
    /// Launch p2p.latency this many times with each MPI, and sockets.latency over an emulated link, and count the intervals that
    /// hold the median of all launches
    #[arg(long, value_name = "N", default_value_t = 0)]
    launches: u32,
    /// Simulate pairs of known noise instead, and compare their headline with total work over wall time
    #[arg(long, conflicts_with_all = ["rows", "model", "launches", "write"])]
    pairs: bool,
    /// Write docs/COVERAGE.md, docs/coverage.svg and the table of METHODOLOGY.md
    #[arg(long, conflicts_with = "model")]
    write: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    if options.pairs {
        return Ok(failed_if(pairs::measure(options.seed)?));
    }
    let workspace = Workspace::read()?;
    let chosen =
        |model: &&Model| model.family.contains(&options.model) || model.name.contains(&options.model);
    let mut lines = Vec::new();
    for model in MODELS.iter().filter(chosen) {
        let coverage = coverage::cover(model, options.rows, options.seed, &Plan::default())
            .map_err(|e| Failure::Missing(format!("{}: {e}", model.name)))?;
        let line = Line { model, coverage };
        println!("   {}", document::progress(&line));
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(Failure::Missing(format!("no family or name of a model contains {:?}", options.model)));
    }
    let mut launched = Vec::new();
    if options.launches > 0 {
        let places = Places::here();
        let mpis: Vec<Mpi> = Flavour::ALL.iter().filter_map(|one| Mpi::find(*one, &places).ok()).collect();
        for mpi in &mpis {
            launched.extend(launches::measure(mpi, &workspace, options.launches)?);
        }
        if let Some(mpi) = mpis.first() {
            match launches::over_a_link(mpi, &workspace, options.launches) {
                Ok(over_a_link) => launched.extend(over_a_link),
                Err(why) => println!("-- an emulated link: skipped, {why}"),
            }
        }
    }
    println!("\n{}", document::table(&lines));
    if !launched.is_empty() {
        println!("{}", document::launches(&launched));
    }
    if options.write {
        workspace.write("docs/coverage.svg", &drawing::draw(&lines))?;
        workspace.write("docs/COVERAGE.md", &document::page(&lines, &launched, options.rows))?;
        let path = workspace.root.join("METHODOLOGY.md");
        let text = fs::read_to_string(&path).map_err(Failure::file(path))?;
        let missing = || Failure::Missing(format!("METHODOLOGY.md has no line {}", document::BEGINNING));
        let text = document::placed(&text, &document::families(&lines)).ok_or_else(missing)?;
        workspace.write("METHODOLOGY.md", &text)?;
    }
    let failed = lines.iter().any(|line| line.verdict() == Verdict::Low);
    Ok(failed_if(failed))
}
