//! The ombx command line as a library: a program that links benchmarks of its own calls [`main`] and lists them beside ours.

#![expect(clippy::print_stderr, reason = "the one crate that talks to users")]

mod args;
mod axes;
mod codegen;
mod deadline;
mod fabric;
mod job;
mod launch;
mod link;
mod links;
mod list;
mod output;
mod progress;
mod run;
mod select;
mod show;
mod watchdog;

use std::process::ExitCode;

use clap::FromArgMatches;
use ombx_core::{
    error::{Error, Result},
    registry::Registry,
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
    let command = args::command(registry);
    let matches = match command.clone().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return args::refuse(&error),
    };
    let cli = Cli::from_arg_matches(&matches).map_err(|e| Error::usage(e.to_string()))?;
    let chosen =
        matches.subcommand().map(|(_, sub)| axes::chosen(registry, sub)).transpose()?.unwrap_or_default();
    match cli.task {
        Task::List(task) => list::list(registry, &task),
        Task::Run(task) => run::run(registry, &task, chosen),
        Task::Links(task) => links::links(registry, &task),
        Task::Show(task) => show::show(&task),
        Task::Completions { shell } => codegen::completions(command, shell),
        Task::Codegen { what } => codegen::codegen(command, what),
    }
}

/// One sentence on stderr; of several ranks only the first speaks.
fn say(error: &Error) {
    if launch::detect::speaks() {
        eprintln!("ombx: {error}");
    }
}
