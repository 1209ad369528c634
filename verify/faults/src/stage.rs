//! Setup for the cases of one MPI: ombx, the interposed library, and the registered benchmarks.

use std::path::{Path, PathBuf};

use super::interpose::{self, Rule};
use ombx_toolchain::{
    failure::Result,
    mpi::Mpi,
    registry::{self, Bench},
    release,
    workspace::Workspace,
};

/// Setup for the cases of one MPI.
pub(crate) struct Stage {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// Path of the interposed library.
    pub(crate) library: PathBuf,
    pub(crate) benches: Vec<Bench>,
    /// Whether only the cases of the gate run.
    pub(crate) gate: bool,
}

impl Stage {
    /// Builds the interposed library, and also ombx if `build` is set.
    pub(crate) fn set(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let ombx = if build {
            release::built_for_tests(mpi, workspace, release::OF_EACH_MPI)?
        } else {
            release::existing(target.join("debug/ombx"))?
        };
        let library = interpose::library(mpi, &target.join("faults"))?;
        let benches = registry::read(&ombx)?;
        Ok(Self { mpi: mpi.clone(), ombx, library, benches, gate: false })
    }

    /// Returns arguments of `ombx run` that apply rules in the ranks.
    pub(crate) fn arguments(&self, rules: &[Rule], log: &Path) -> Vec<String> {
        if rules.is_empty() {
            return Vec::new();
        }
        interpose::arguments(self.mpi.flavour, &self.library, rules, log)
    }

    /// Finds a benchmark by its name.
    pub(crate) fn bench(&self, name: &str) -> Option<&Bench> {
        self.benches.iter().find(|bench| bench.name == name)
    }
}
