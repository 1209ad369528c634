//! Two-sided patterns, written once and crossed with links at compile time: MPI and sockets run the same loops.

pub mod pattern;
pub mod threaded;
