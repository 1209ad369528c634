//! Where faults happen: ombx built with one MPI, the interposed library, and the benchmarks that there are.

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

/// All that a case of one MPI needs.
pub(crate) struct Stage {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// The interposed library.
    pub(crate) library: PathBuf,
    pub(crate) benches: Vec<Bench>,
}

/// A registered benchmark, as `ombx list --json` has it.
pub(crate) struct Bench {
    pub(crate) name: String,
    /// Why it cannot run with this MPI.
    pub(crate) unavailable: Option<String>,
}

impl Stage {
    /// Builds ombx, unless it is to be used as it is, and the interposed library.
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

    /// Arguments of `ombx run` that put rules into ranks.
    pub(crate) fn arguments(&self, rules: &[Rule], log: &Path) -> Vec<String> {
        if rules.is_empty() {
            return Vec::new();
        }
        interpose::arguments(self.mpi.flavour, &self.library, rules, log)
    }

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
