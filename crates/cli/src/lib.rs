//! The ombx command line as a library: a program that links benchmarks of its own calls [`main`] and lists them beside ours.

/// One line on standard error. Nobody may listen any more, which is no reason to fail.
macro_rules! tell {
    ($($words:tt)*) => { $crate::plain::tell(format_args!($($words)*)) };
}

mod ab;
mod args;
mod argv;
mod axes;
mod codegen;
mod compare;
mod deadline;
mod doctor;
mod fabric;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod job;
mod launch;
mod link;
mod links;
mod list;
mod lookup;
mod osu;
mod output;
mod plain;
mod progress;
mod report;
mod run;
mod select;
mod show;
mod start;
mod suite;
mod typed;
mod watchdog;

use std::{ffi::OsString, process::ExitCode};

use clap::FromArgMatches;
use ombx_core::{
    benchmark::registry::Registry,
    error::{Error, Result},
};

use crate::args::{Cli, Task};

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    let code = match Registry::load().and_then(|registry| dispatch(&registry)) {
        Ok(code) => code,
        Err(error) => {
            say(&error);
            error.kind().exit_code()
        }
    };
    ExitCode::from(code)
}

fn dispatch(registry: &Registry) -> Result<u8> {
    let words = argv::words();
    argv::check(&words)?;
    dispatch_words(registry, &mut words.into_iter())
}

fn dispatch_words(registry: &Registry, words: &mut dyn Iterator<Item = OsString>) -> Result<u8> {
    let command = args::command(registry);
    let matches = match command.clone().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => return typed::refuse(&error, &command),
    };
    let cli = Cli::from_arg_matches(&matches).map_err(|e| Error::usage(e.to_string()))?;
    let chosen =
        matches.subcommand().map(|(_, sub)| axes::chosen(registry, sub)).transpose()?.unwrap_or_default();
    match cli.task {
        Task::List(task) => list::list(registry, &command, &task),
        Task::Run(task) => run::run(registry, &command, &matches, &task, chosen),
        Task::Links(task) => links::links(registry, &task),
        Task::Cluster(task) => ombx_cluster::run(*task),
        Task::Doctor(task) => doctor::doctor(&task),
        Task::Osu(task) => osu::osu(registry, &task),
        Task::Show(task) => show::show(&task),
        Task::Compare(task) => compare::compare(&task),
        Task::Ab(task) => ab::ab(registry, &task, chosen, &command, &matches),
        #[cfg(feature = "sockets")]
        Task::PipelineProcess { .. } => Ok(ombx_sockets::pipeline::serve()),
        Task::Report(task) => report::report(&task),
        Task::Completions { shell } => codegen::completions(command, shell),
        Task::Worker => fabric::work(registry),
        Task::Codegen { what } => codegen::codegen(registry, command, what),
    }
}

/// One sentence on stderr; of several ranks only the first speaks.
fn say(error: &Error) {
    if launch::detect::speaks() {
        tell!("ombx: {}", plain::line(&error.to_string()));
    }
}
