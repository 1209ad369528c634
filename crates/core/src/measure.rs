//! How a benchmark is measured: the plan, sessions, timed loops, rounds of samples and the stop rule.

pub mod collect;
pub mod engine;
pub mod intervals;
mod load;
pub mod opened;
pub mod overlap;
pub mod phases;
pub mod plan;
mod ranks;
mod repeat;
mod rounds;
pub mod row;
pub mod runner;
pub mod session;
pub mod shuffle;
pub mod sink;
pub mod stop;
pub mod thread_pool;
pub mod timed_loop;
pub(crate) mod workers;
