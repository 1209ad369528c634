//! How a benchmark is measured: the plan, sessions, timed loops, rounds of samples and the stop rule.

pub mod collect;
pub mod engine;
mod load;
pub mod overlap;
pub mod plan;
mod rounds;
pub mod row;
pub mod runner;
pub mod session;
pub mod stop;
pub mod timed_loop;
pub(crate) mod workers;
