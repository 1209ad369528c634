//! Test support: threads as ranks, links of known cost in virtual time, simulated noise and malformed input.

mod batches;
pub mod coverage;
mod directory;
mod hostile;
pub mod noise;
pub mod pairs;
mod probe;
mod reduction;
mod seed;
mod sim_link;
mod sim_mesh;
mod sim_server;
mod thread_team;

pub use self::{
    batches::time_batches,
    directory::Directory,
    hostile::hostile,
    probe::{Probe, SlowerByRank},
    reduction::combine,
    seed::{seed, seeded},
    sim_link::SimLink,
    sim_mesh::SimMesh,
    sim_server::{PAUSE_NS, SimServer},
    thread_team::{
        Delay, SimMessage, ThreadTeam, measure, measure_on_hosts, on_ranks, on_skewed_ranks, on_uneven_ranks,
    },
};
