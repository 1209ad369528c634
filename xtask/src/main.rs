//! `cargo xtask`: the commands of a developer of ombx, from an empty machine to a checked change.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod checks;
mod count;
mod delegate;
mod demo;
mod dist;
mod fuzz;
mod identity;
mod install;
mod libclang;
mod mutations;
mod package;
mod picture;
mod repository;
mod sanitize;
mod setup;
mod signals;
mod slices;
mod source;
mod structure;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ombx_toolchain::exit_code;

use delegate::{Arguments as Passed, Program};

/// Developer commands of ombx. Rust and a C linker are enough to start any of them.
#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "A first look:      cargo xtask demo\nThe whole test:    cargo xtask test\n\
                  Before a change:   cargo xtask ci"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Setup(setup::Options),
    Demo(demo::Options),
    /// Build ombx and run its tests; at most 10 minutes on 2 cores from a fresh clone
    ///
    /// Runs unit tests, the command line, every benchmark once with verification, and sockets, with one MPI. Prints what it left
    /// out: `cargo xtask ci` has everything that a change must pass, `cargo xtask nightly` what takes longer.
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test ranks --mpi openmpi -- \
                            benchmarks::\n  cargo xtask test ranks sockets --repeat 20 --under-load")]
    Test(test::Options),
    /// Run every check that a change must pass: lints, documentation, tests with every MPI; then one slice of the nightly checks
    #[command(after_help = "Examples:\n  cargo xtask ci\n  cargo xtask ci format tidy clippy")]
    Ci(test::OfChange),
    /// Run what takes too long for each change, in slices: matrices of options, hosts, faults, fuzzing, packages, with a new seed
    #[command(
        after_help = "Examples:\n  cargo xtask nightly --slices\n  cargo xtask nightly --slice 3\n  cargo xtask \
                      nightly hosts browser\n  cargo xtask nightly matrices --seed 42"
    )]
    Nightly(test::OfNight),
    Mutations(mutations::Options),
    Tidy(tidy::Options),
    Count(count::Options),
    Picture(picture::Options),
    Install(install::Options),
    Dist(dist::Options),
    /// Measure every link of a cluster by `ombx cluster`, with a release build of ombx
    ClusterBench(Passed),
    /// Put faults into jobs of ombx and judge how they end
    Faults(Passed),
    /// Compare ombx with plain C loops: time of an iteration, and instructions added to it
    Fidelity(Passed),
    /// Measure how long default sweeps take beside six runs of OMB, and where the time of a launch goes
    Speed(Passed),
    /// Measure the cost of the work of ombx itself: clock, statistics, registry, files, schedules, frames
    Benches(Passed),
    Fuzz(fuzz::Options),
    Sanitize(sanitize::Options),
    /// Count how often the interval of a row holds the true median of simulated noise
    Coverage(Passed),
    /// Measure start-up, memory of a rank and size of results for more and more ranks
    Scale(Passed),
    /// Run every benchmark once on the MPI libraries of the Python registry and of this machine
    Libraries(Passed),
    /// Make several Linux hosts on this machine, joined by a network of known delay and rate
    Testbed(Passed),
}

fn main() -> ExitCode {
    signals::default_signals();
    exit_code(match Arguments::parse().task {
        Task::Setup(options) => setup::main(&options),
        Task::Demo(options) => demo::main(&options),
        Task::Test(options) => test::main(&options),
        Task::Ci(options) => test::of_change(&options),
        Task::Nightly(options) => test::of_night(&options),
        Task::Mutations(options) => mutations::main(&options),
        Task::Tidy(options) => tidy::main(&options),
        Task::Count(options) => count::main(&options),
        Task::Picture(options) => picture::main(&options),
        Task::Install(options) => install::main(&options),
        Task::Dist(options) => dist::main(&options),
        Task::ClusterBench(passed) => passed.exec(Program::ClusterBench),
        Task::Faults(passed) => passed.exec(Program::Faults),
        Task::Fidelity(passed) => passed.exec(Program::Fidelity),
        Task::Speed(passed) => passed.exec(Program::Speed),
        Task::Benches(passed) => passed.exec(Program::Benches),
        Task::Fuzz(options) => fuzz::main(&options),
        Task::Sanitize(options) => sanitize::main(&options),
        Task::Coverage(passed) => passed.exec(Program::Coverage),
        Task::Scale(passed) => passed.exec(Program::Scale),
        Task::Libraries(passed) => passed.exec(Program::Libraries),
        Task::Testbed(passed) => passed.exec(Program::Testbed),
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
