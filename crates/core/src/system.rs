//! The machine that a rank runs on: clock, host, placement and environment.

pub mod cache;
pub mod clock;
pub mod device_counters;
pub mod environment;
pub mod file;
pub mod host;
pub mod host_name;
pub mod limits;
pub mod machine;
pub mod node_set;
pub mod performance;
pub mod placement;
pub mod ssh;
pub mod watchdog;
