//! Sockets without MPI: sessions of ranks, benchmarks of their links, and the phase pipeline.
//!
//! A session has a [`Coordinator`]; each rank joins it as a [`SocketTeam`], on which the engine runs benchmarks. The crate
//! registers `sockets.latency`, `sockets.bw`, `sockets.bibw`, `sockets.link` and `sockets.pipeline`.
//!
//! | module | content |
//! |---|---|
//! | [`socket`] | streams, socket options, deadlines, identity of hosts |
//! | [`control`] | token, listener, messages, channels, processes: shared by sessions and the pipeline |
//! | [`session`] | coordinator, a rank's connection to it, the team |
//! | `link` | connections that carry payload: streams and datagrams |
//! | [`pipeline`] | the phase pipeline, which starts its own processes |
//!

pub mod control;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod link;
pub mod pipeline;
pub mod session;
pub mod socket;
mod transport;

pub use self::{
    control::token::Token,
    session::{Coordinator, SocketTeam},
    socket::host,
};
