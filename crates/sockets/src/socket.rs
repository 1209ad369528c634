//! Sockets and the hosts at their ends: streams, addresses, socket options, deadlines.

pub mod deadline;
pub mod host;
pub mod options;
pub mod stream;
