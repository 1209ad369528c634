//! For tests: ranks as threads, each with a clock of its own moved by hand, and links of known cost in virtual time.

mod batches;
mod probe;
mod sim_link;
mod thread_team;

pub use self::{
    batches::time_batches,
    probe::Probe,
    sim_link::SimLink,
    thread_team::{Delay, Letter, ThreadTeam, measure, on_ranks, on_uneven_ranks},
};
