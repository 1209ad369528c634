//! Sockets without MPI: sessions of ranks, benchmarks of their links, and the phase pipeline.
//!
//! A session has a [`Coordinator`]; each rank joins it as a [`SocketTeam`], on which the engine runs benchmarks. The crate
//! registers `sockets.latency`, `sockets.bw`, `sockets.bibw`, `sockets.link`, `sockets.connect`, `sockets.datagrams`, `sockets.request`
//! and `sockets.pipeline`.
//!
//! | module | content |
//! |---|---|
//! | [`socket`] | streams, socket options, deadlines, identity of hosts |
//! | [`control`] | token, listener, messages, channels, processes: shared by sessions and the pipeline |
//! | [`session`] | coordinator, a rank's connection to it, the team |
//! | [`server`] | ranks that a server starts for clients, without ssh |
//! | `link` | connections that carry payload: streams and datagrams |
//! | [`pipeline`] | the phase pipeline, which starts its own processes |
//!
//! # Example
//!
//! Two ranks measure the latency of TCP. Here they are threads of one process.
//!
//! ```
//! use ombx_core::{
//!     benchmark::Registry,
//!     error::Result,
//!     measure::{plan::{Effort, Plan}, runner, session::Memory},
//!     clock::Clock,
//!     unit::Bytes,
//! };
//! use ombx_sockets::{Coordinator, SocketTeam, Token, session::{Reach, listen}};
//!
//! let token = Token::random()?;
//! let listener = listen(token, Reach::ThisHost)?;
//! let address = ([127, 0, 0, 1], listener.port()).into();
//! Coordinator::start(listener, 2, Box::new(|_| ()))?;
//!
//! let measure = move |rank| -> Result<Memory> {
//!     let team = SocketTeam::join(&[address], token, rank, |_, why| panic!("{why}"))?;
//!     let plan = Plan {
//!         sizes: Some(vec![Bytes(8)]),
//!         effort: Effort::Fixed { iterations: 100, warmup: 10 },
//!         ..Plan::default()
//!     };
//!     let choices = vec![Registry::load()?.get("sockets.latency")?];
//!     let mut rows = Memory::default();
//!     runner::run_all(&team, &[runner::Part { choices, plan }], &Clock::measured(), &mut rows, Vec::new())?;
//!     team.leave();
//!     Ok(rows)
//! };
//! let other = std::thread::spawn(move || measure(1));
//! let rows = measure(0)?.rows;
//! other.join().unwrap()?;
//! assert_eq!(rows[0].bytes, Some(8));
//! println!("{:.1} us", rows[0].summary.as_ref().unwrap().median / 1e3);
//! # Ok::<(), ombx_core::error::Error>(())
//! ```

mod benchmarks;
pub mod control;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod link;
mod options;
pub mod pipeline;
pub mod server;

/// Sessions: ranks of one job, and the coordinator that connects them.
pub mod session {
    pub(crate) mod connection;
    pub mod coordinator;
    mod peers;
    pub mod team;

    pub(crate) use self::peers::IdleTask;
    pub use self::{
        connection::join_timeout,
        coordinator::{Coordinator, Reach, SessionEvent, listen},
        peers::OnEnd,
        team::{Cpus, SocketTeam},
    };
}

pub mod socket;
mod transport;

pub use self::{
    control::Token,
    session::{Coordinator, SocketTeam},
};
