//! `cargo xtask`: the commands of a developer of ombx, from an empty machine to a checked change.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod checks;
mod count;
mod delegate;
mod demo;
mod dist;
mod install;
mod libclang;
mod package;
mod picture;
mod repository;
mod setup;
mod source;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ombx_toolchain::failure;

use delegate::Arguments as Passed;

/// Developer commands of ombx. Rust and a C linker are enough to start any of them.
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
    Ci(test::CiOptions),
    Nightly(test::NightlyOptions),
    Tidy(tidy::Options),
    Count(count::Options),
    Picture(picture::Options),
    Install(install::Options),
    Dist(dist::Options),
    /// Measure every link of a cluster by `ombx cluster`, with a release build of ombx
    #[command(disable_help_flag = true)]
    ClusterBench(Passed),
    /// Put faults into jobs of ombx and judge how they end
    #[command(disable_help_flag = true)]
    Faults(Passed),
    /// Compare ombx with plain C loops: time of an iteration, and instructions added to it
    #[command(disable_help_flag = true)]
    Fidelity(Passed),
    /// Measure how long default sweeps take beside six runs of OMB, and where the time of a launch goes
    #[command(disable_help_flag = true)]
    Speed(Passed),
    /// Measure the cost of the work of ombx itself: clock, statistics, registry, files, schedules, frames
    #[command(disable_help_flag = true)]
    Benches(Passed),
    /// Fuzz the readers of command lines, suites, host files, results and frames
    #[command(disable_help_flag = true)]
    Fuzz(Passed),
    /// Run unsafe code under valgrind: unit tests, tests on ranks, and a short run on two ranks
    #[command(disable_help_flag = true)]
    Sanitize(Passed),
    /// Count how often the interval of a row holds the true median of simulated noise
    #[command(disable_help_flag = true)]
    Coverage(Passed),
    /// Measure start-up, memory of a rank and size of results for more and more ranks
    #[command(disable_help_flag = true)]
    Scale(Passed),
    /// Run every benchmark once on the MPI libraries of the Python registry and of this machine
    #[command(disable_help_flag = true)]
    Libraries(Passed),
    /// Make several Linux hosts on this machine, joined by a network of known delay and rate
    #[command(disable_help_flag = true)]
    Testbed(Passed),
}

fn main() -> ExitCode {
    failure::exit_code(match Arguments::parse().task {
        Task::Setup(options) => setup::main(&options),
        Task::Demo(options) => demo::main(&options),
        Task::Test(options) => test::main(&options),
        Task::Ci(options) => test::ci(&options),
        Task::Nightly(options) => test::nightly(&options),
        Task::Tidy(options) => tidy::main(&options),
        Task::Count(options) => count::main(&options),
        Task::Picture(options) => picture::main(&options),
        Task::Install(options) => install::main(&options),
        Task::Dist(options) => dist::main(&options),
        Task::ClusterBench(passed) => passed.exec("ombx-cluster-bench"),
        Task::Faults(passed) => passed.exec("ombx-faults"),
        Task::Fidelity(passed) => passed.exec("ombx-fidelity"),
        Task::Speed(passed) => passed.exec("ombx-speed"),
        Task::Benches(passed) => passed.exec("ombx-benches"),
        Task::Fuzz(passed) => passed.exec("ombx-fuzzing"),
        Task::Sanitize(passed) => passed.exec("ombx-sanitize"),
        Task::Coverage(passed) => passed.exec("ombx-coverage"),
        Task::Scale(passed) => passed.exec("ombx-scale"),
        Task::Libraries(passed) => passed.exec("ombx-libraries"),
        Task::Testbed(passed) => passed.exec("ombx-testbed"),
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
