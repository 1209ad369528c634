//! Ranks of a communicator, as the engine sees them, and the untimed communication between them.

pub(crate) mod communicator;
pub(crate) mod handles;
pub(crate) mod mesh;
pub(crate) mod mpi_team;
