//! Ranks of a communicator, as the engine sees them, and the untimed communication between them.

pub(crate) mod communicator;
