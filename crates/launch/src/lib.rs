//! Jobs: starting the ranks of a job, watching and repeating them, what a rank does, and where its rows go.
//!
//! A command prepares a [`job`](job::Job) of plain values. [`role`] decides whether this process starts ranks ([`launch`]) or is one
//! ([`rank`]); [`output`] writes the rows. Nothing here reads the words of a user: what a rank gets is the job.

#![cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only launchers of MPI need it"))]

/// Writes one formatted line to standard error.
#[macro_export]
macro_rules! stderr_line {
    ($($words:tt)*) => { $crate::stderr::write_line(format_args!($($words)*)) };
}

/// Writes a line on standard error that is no error, unless the user wants none.
#[macro_export]
macro_rules! note_line {
    ($($words:tt)*) => { $crate::stderr::write_note(format_args!($($words)*)) };
}

mod build;
pub mod job;
pub mod launch;
pub mod output;
#[cfg(feature = "sockets")]
pub mod private_file;
pub mod rank;
pub mod result_file;
pub mod role;
pub mod stderr;
pub mod this_process;
