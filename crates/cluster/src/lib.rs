//! Measures every link of a cluster: pairs of hosts first, then all hosts together.
//!
//! `ombx cluster` and `cargo xtask cluster-bench` call this crate. It starts `ombx links` for each job, through ssh or a
//! scheduler, and needs no MPI itself. A run takes these steps:
//!
//! ```text
//! inventory -> plan -> preflight -> execute -> record -> collect -> summary
//! ```
//!
//! Planning starts nothing, so that this example runs anywhere:
//!
//! ```
//! use ombx_cluster::{
//!     inventory::Inventory,
//!     plan::{self, Pairs},
//! };
//!
//! let inventory = Inventory::parse(
//!     "[[hosts]]\nname = \"n01\"\n[[hosts]]\nname = \"n02\"\n[[hosts]]\nname = \"n03\"\n",
//! )?;
//! let rounds = plan::rounds(&inventory.hosts, &Pairs::Ring, 1)?;
//! let names: Vec<&str> = rounds.iter().flatten().map(|job| job.name.as_str()).collect();
//! assert_eq!(names, ["pairs-n01-n02", "pairs-n02-n03", "pairs-n01-n03", "together"]);
//! # Ok::<(), ombx_record::error::Error>(())
//! ```

mod campaign;
mod cluster;
mod collect;
mod execute;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod inventory;
mod pair_sweep;
mod parallel;
pub mod plan;
mod preflight;
mod record;
mod remote;
mod script;
mod summary;

use std::path::PathBuf;

use ombx_record::error::Result;

pub use self::{
    campaign::{Binary, Campaign},
    cluster::{LauncherChoice, Options},
};

/// Measures with the ombx of this path, and returns the exit code.
pub fn run(options: Options, path: PathBuf) -> Result<u8> {
    let campaign = Campaign::prepare(options)?;
    let mpi = campaign.mpi().map(str::to_owned);
    campaign.run(Binary { path, mpi })
}
