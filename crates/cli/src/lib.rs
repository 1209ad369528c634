//! The ombx command line as a library. A program that links its own benchmarks calls [`main`] and has them beside those of ombx.
//!
//! A command (`commands`) reads its `arguments` and prepares a [`Job`](ombx_launch::job::Job) of plain values. [`ombx_launch::role`] runs it.
//! Nothing here measures, and no other crate reads the words of a user.

#![cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only launchers of MPI need it"))]

/// Arguments that several commands share.
mod arguments {
    pub(crate) mod argv;

    pub(crate) mod launches;
    pub(crate) mod output;
    pub(crate) mod parameters;
    pub(crate) mod start;
    pub(crate) mod values;
}

mod commands;
mod dispositions;
mod families;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod lookup;
mod suite;

use std::{
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use ombx_core::benchmark::Registry;
use ombx_host::signals::is_ignored;
use ombx_launch::{
    launch::{detection, preflight},
    output::{monitoring, terminal},
    rank, role, stderr, stderr_line, this_process,
};
use signal_hook::consts::{SIGCHLD, SIGXFSZ};

/// Lets this process learn how its children end. A parent that ignores SIGCHLD passes that on, and children then leave no exit status.
fn take_children_back() {
    if is_ignored(SIGCHLD) {
        // A program that is started has the default again.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    dispositions::restore();
    if !is_ignored(SIGXFSZ) {
        // A write beyond the limit of file sizes then fails, instead of killing this process.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
    take_children_back();
    let words = this_process::typed();
    let service = monitoring::service(&words);
    let is_any_of =
        |names: &[&str]| words.get(1).is_some_and(|command| names.iter().any(|name| command == name));
    let in_common = is_any_of(&commands::MEASURING) || is_any_of(&commands::STARTING);
    let ended = preflight::check_stack().and_then(|()| match role::started(&words) {
        Some(ended) => ended,
        None => commands::dispatch(&Registry::load()?, words.clone()),
    });
    if let Some(service) = service {
        return ExitCode::from(monitoring::conclude(service, ended));
    }
    ExitCode::from(ended.unwrap_or_else(|error| {
        // Ranks have errors in common, and the first prints them. Other commands know nothing of ranks.
        if !in_common || detection::is_first_process() {
            stderr_line!("ombx: {}", stderr::printable(&error.to_string()));
            if let Some(text) = monitoring::error_as_json(&words, &error) {
                // The error is on standard error if standard output is closed.
                let _ = terminal::print(text);
            }
        }
        if in_common {
            rank::share(&error);
        }
        error.kind().exit_code()
    }))
}
