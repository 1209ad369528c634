//! The same benchmarks over sockets without MPI, and the phase pipeline.
//!
//! What both share: a [`token::Token`] that everyone of a session knows, [`frame`]s of checked length, a [`door::Door`] that
//! admits only who shows the token, [`deadline::Deadline`]s and [`options::Options`] of sockets.
//!
//! A session of ranks has a [`coordinator::Coordinator`]; each rank joins it as a [`SocketTeam`].

pub mod coordinator;
pub mod deadline;
pub mod door;
pub mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod host;
mod link;
pub mod options;
pub mod pipeline;
mod post;
mod protocol;
mod shared;
pub mod stream;
mod team;
pub mod token;
mod transport;
mod zero_copy;

pub use self::{post::End, team::SocketTeam};
