//! Sessions: ranks of one job, and the coordinator that connects them.

mod connection;
pub mod coordinator;
pub(crate) mod protocol;
pub mod team;

pub(crate) use self::connection::IdleTask;
pub use self::{
    connection::OnEnd,
    coordinator::{Coordinator, Reach, SessionEvent, listen},
    team::SocketTeam,
};
