//! Test support: threads as ranks, links of known cost in virtual time, simulated noise and malformed input.

pub mod coverage;
pub mod noise;
pub mod pairs;
mod probe;
mod sim_link;
mod thread_team;

pub use self::{
    probe::{Probe, SlowerByRank},
    sim_link::SimLink,
    thread_team::{
        Delay, SimMessage, ThreadTeam, measure, measure_on_hosts, on_ranks, on_skewed_ranks, on_uneven_ranks,
    },
};
pub use crate::testkit::coverage::time_batches;
pub use crate::testkit::noise::{seed, seeded};
pub use crate::testkit::probe::hostile;
pub use crate::testkit::sim_link::SimMesh;
pub use crate::testkit::sim_link::{PAUSE_NS, SimServer};
pub use crate::testkit::thread_team::Directory;
pub use crate::testkit::thread_team::combine;
