//! Test kit: jobs with a deadline that leave no process behind, the MPI under test, and readers of what ombx writes.

use std::io::Write as _;

pub mod browser;
pub mod interpose;
mod job;
pub mod mpi;
pub mod process;
pub mod results;
pub mod shim;

pub use self::job::{Done, Files, Job, Running};

/// Says why a test tests nothing here.
pub fn skipped(why: &str) {
    tell(&format!("skipped: {why}"));
}

/// Says what a test has found, past the harness, which shows nothing of a test that passes.
pub fn tell(what: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    // Only what `print!` and its kin write is captured. Nobody may listen.
    let _ = writeln!(std::io::stderr(), "{name}: {what}");
}
