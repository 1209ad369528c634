//! Test support: threads as ranks, links of known cost in virtual time, simulated noise and malformed input.
//!
//! The unit tests of `ombx-core` compile these files as a module, so that paths to core begin with `ombx_core` and others with `super`.

pub mod coverage;
pub mod noise;
pub mod sim_link;
mod thread_team;

pub use self::{
    coverage::time_batches,
    noise::{seed, seeded},
    sim_link::{PAUSE_NS, SimLink, SimMesh, SimServer},
    thread_team::{
        Delay, Directory, Probe, SimMessage, SlowerByRank, ThreadTeam, combine, hostile, measure,
        measure_on_hosts, on_ranks, on_skewed_ranks, on_uneven_ranks,
    },
};

/// Returns the run of the golden file, a template for tests of what reads rows.
///
/// # Panics
/// The file is not there, or is no result file.
pub fn golden() -> ombx_record::file::RunWithRows {
    let file = include_bytes!("../../../crates/record/tests/golden/one_launch.jsonl");
    ombx_record::file::read(file.as_slice()).expect("a result file").runs.remove(0)
}
