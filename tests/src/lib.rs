//! Test kit: jobs that make progress and leave no process behind, the MPI under test, and readers of the output of ombx.

use std::{env, io::Write as _};

pub mod browser;
pub mod defects;
pub mod imb;
pub mod interpose;
mod job;
pub mod kept;
pub mod links;
pub mod mpi;
pub mod namespace;
pub mod old_scripts;
pub mod osu;
pub mod parsers;
pub mod prometheus;
pub mod reframe;
pub mod results;
pub mod shim;
pub mod sockets;
pub mod stand_in;
pub mod terminal;
pub mod upstream;
pub mod walkthrough;

pub use ombx_toolchain::process;

pub use self::job::{Done, Files, Job, Running};

/// Prints why a test cannot run on this machine. `cargo xtask test` counts the test as skipped.
pub fn skipped(why: &str) {
    print_note(&format!("skipped: {why}"));
}

/// Returns the programs that are not installed. System directories are searched although they may not be on `PATH`.
pub fn missing<'a>(programs: &[&'a str]) -> Vec<&'a str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    let installed = |program: &str| directories.iter().any(|directory| directory.join(program).is_file());
    programs.iter().copied().filter(|program| !installed(program)).collect()
}

/// Prints a note of a test to standard error, which the test harness does not capture.
pub fn print_note(what: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    // The harness captures only `print!` and similar macros. A closed standard error is no failure.
    let _ = writeln!(std::io::stderr(), "{name}: {what}");
}
