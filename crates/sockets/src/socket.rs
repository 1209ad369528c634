//! Sockets and the hosts at their ends: streams, addresses, socket options, deadlines.

pub mod deadline;
pub mod host;
pub mod options;
pub mod stream;

pub(crate) use self::options::{Ip, LinkOptions, MPTCP};
pub use self::{
    deadline::Deadline,
    options::SocketOptions,
    stream::{Address, Stream},
};
