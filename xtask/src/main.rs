//! `cargo xtask`: what a developer of ombx types, from an empty machine to a checked change.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a binary that talks to a person or to a CI log"
)]

mod benches;
mod ci;
mod cluster_bench;
mod codegen;
mod consent;
mod coverage;
mod demo;
mod failure;
mod faults;
mod fidelity;
mod fuzz;
mod libclang;
mod mpi;
mod package;
mod release;
mod sanitize;
mod scale;
mod setup;
mod speed;
mod step;
mod svg;
mod tally;
mod test;
mod testbed;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer commands of ombx. None of them needs anything but Rust and a C linker to start.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "A first look:      cargo xtask demo\nThe whole test:    cargo xtask test\nBefore a change:   cargo xtask ci"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Setup(setup::Options),
    Demo(demo::Options),
    Test(test::Options),
    Ci(ci::Options),
    Tidy(tidy::Options),
    Codegen(codegen::Options),
    Faults(faults::Options),
    Fidelity(fidelity::Options),
    Speed(speed::Options),
    Benches(benches::Options),
    Fuzz(fuzz::Options),
    Sanitize(sanitize::Options),
    Coverage(coverage::Options),
    Scale(scale::Options),
    Testbed(testbed::Options),
    ClusterBench(cluster_bench::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Setup(options) => setup::main(&options),
        Task::Demo(options) => demo::main(&options),
        Task::Test(options) => test::main(&options),
        Task::Ci(options) => ci::main(&options),
        Task::Tidy(options) => tidy::main(&options),
        Task::Codegen(options) => codegen::main(&options),
        Task::Faults(options) => faults::main(&options),
        Task::Fidelity(options) => fidelity::main(&options),
        Task::Speed(options) => speed::main(&options),
        Task::Benches(options) => benches::main(&options),
        Task::Fuzz(options) => fuzz::main(&options),
        Task::Sanitize(options) => sanitize::main(&options),
        Task::Coverage(options) => coverage::main(&options),
        Task::Scale(options) => scale::main(&options),
        Task::Testbed(options) => testbed::main(&options),
        Task::ClusterBench(options) => cluster_bench::main(&options),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("xtask: {failure}");
        ExitCode::from(failure.code())
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
