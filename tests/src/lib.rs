//! Test kit: jobs with a deadline that leave no process behind, the MPI under test, and readers of what ombx writes.

pub mod interpose;
mod job;
pub mod mpi;
pub mod process;
pub mod results;

pub use self::job::{Done, Files, Job, Running};
