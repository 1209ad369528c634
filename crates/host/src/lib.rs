//! A host: facts about its devices, counters of its kernel, limits of its processes, and names of hosts.
//!
//! The crate knows no benchmark and no MPI. It reads files of the kernel and asks its devices; what a fact or a counter means for a row is
//! decided elsewhere.

pub mod control_group;
pub mod device_counters;
pub mod environment;
pub mod host;
pub mod host_name;
pub mod limits;
pub mod loaded;
pub mod machine;
pub mod node_set;
pub mod performance;
pub mod remote_shell;
pub mod search_path;
pub mod signals;
pub mod since;
pub mod watchdog;
