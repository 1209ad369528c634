//! The machine that a rank runs on: clock, host, CPUs, limits and environment.

pub mod clock;
pub mod environment;
pub mod host;
pub mod host_name;
pub mod placement;
