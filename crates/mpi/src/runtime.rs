//! The MPI library of this build, and its start and end on this process.

pub(crate) mod device_support;
pub(crate) mod library;
