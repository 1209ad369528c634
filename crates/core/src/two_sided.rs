//! Two-sided communication: patterns that run over MPI and over sockets in the same loops.

pub mod datagrams;
pub mod pattern;
pub mod request;
pub mod threaded;
