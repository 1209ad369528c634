//! `cargo xtask coverage`: how often intervals hold the true median, for simulated noise and for invocations on this machine.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod comparisons;
mod days;
mod document;
mod history;
mod invocations;
mod launch_models;
mod line;
mod links;
mod random;
mod rules;
mod verdicts;

use std::process::ExitCode;

use clap::Parser as _;
use ombx_core::measure::plan::Plan;
use ombx_testkit::coverage::{self, MODELS, Model};

use ombx_toolchain::{Failure, Result, Workspace, exit_code, failed_if};

use line::{Line, Verdict};

/// Count how often the interval of a row holds the true median of simulated noise, or the row has a mark
///
/// The code that measures real rows measures these, with the default precision and time. Only the time of an iteration is drawn
/// from a model. Fails if rows without a mark certainly miss the true median more than 8 times in 100.
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask coverage",
    args_conflicts_with_subcommands = true,
    after_help = "Example: cargo xtask coverage --rows 500 --model bimodal"
)]
struct Options {
    #[command(subcommand)]
    task: Option<Task>,
    /// Rows per model
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rows: u64,
    /// Simulate only models whose family or name contains this
    #[arg(long, value_name = "PATTERN", default_value = "", hide_default_value = true)]
    model: String,
    /// Seed of the noise
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seed: u64,
    /// Write the results to docs/EVIDENCE.md, and all tables to target/evidence
    #[arg(long, conflicts_with = "model")]
    write: bool,
}

#[derive(clap::Subcommand)]
enum Task {
    Comparisons(comparisons::Options),
    Invocations(invocations::Options),
    Rules(rules::Options),
    Verdicts(verdicts::Options),
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    match &options.task {
        Some(Task::Comparisons(options)) => return comparisons::main(options, &workspace),
        Some(Task::Invocations(options)) => return invocations::main(options, &workspace),
        Some(Task::Rules(options)) => return rules::main(options, &workspace),
        Some(Task::Verdicts(options)) => return verdicts::main(options, &workspace),
        None => {}
    }
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
    println!("\n{}", document::table(&lines));
    let simulated = launch_models::table(&launch_models::simulate(options.rows, options.seed));
    println!("{simulated}");
    if options.write {
        let what = format!("{} rows of each model, seed {}", options.rows, options.seed);
        let tables = format!("{}\n{simulated}", document::table(&lines));
        document::write(&workspace, "coverage", &what, &document::families(&lines), &tables)?;
    }
    let failed = lines.iter().any(|line| line.verdict() == Verdict::Low);
    Ok(failed_if(failed))
}
