//! Sessions: ranks of one job, and the coordinator that connects them.

mod connection;
pub mod coordinator;
mod inbox;
mod peers;
pub(crate) mod protocol;
pub mod team;

pub(crate) use self::inbox::IdleTask;
pub use self::{
    connection::join_timeout,
    coordinator::{Coordinator, Reach, SessionEvent, listen},
    inbox::OnEnd,
    team::SocketTeam,
};
