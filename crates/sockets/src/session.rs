//! Sessions: ranks of one job, and the coordinator that connects them.

pub(crate) mod connection;
pub mod coordinator;
mod peers;
pub mod team;

pub(crate) use self::peers::IdleTask;
pub use self::{
    connection::join_timeout,
    coordinator::{Coordinator, Reach, SessionEvent, listen},
    peers::OnEnd,
    team::SocketTeam,
};
