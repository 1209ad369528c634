//! Setup for the cases of one MPI: ombx, the interposed library, and the registered benchmarks.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::interpose::{self, Rule};
use ombx_toolchain::{
    command::output,
    failure::{Failure, Result},
    mpi::Mpi,
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
}

/// Registered benchmark, from `ombx list --json`.
pub(crate) struct Bench {
    pub(crate) name: String,
    /// Reason why the benchmark cannot run with this MPI.
    pub(crate) unavailable: Option<String>,
}

impl Stage {
    /// Builds the interposed library, and also ombx if `build` is set.
    pub(crate) fn set(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let ombx = match build {
            true => release::built_for_tests(mpi, workspace)?,
            false => release::existing(target.join("debug/ombx"))?,
        };
        let library = interpose::library(mpi, &target.join("faults"))?;
        let benches = benches(&ombx)?;
        Ok(Self { mpi: mpi.clone(), ombx, library, benches })
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

fn benches(ombx: &Path) -> Result<Vec<Bench>> {
    let list = output(Command::new(ombx).args(["list", "--json"]))?;
    let list: Vec<Value> = serde_json::from_str(&list)
        .map_err(|source| Failure::Output { program: "ombx list --json", source })?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bench = |value: &Value| Bench {
        name: text(&value["name"]),
        unavailable: value["available"].as_str().map(str::to_owned),
    };
    Ok(list.iter().map(bench).collect())
}
