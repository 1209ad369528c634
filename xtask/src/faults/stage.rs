//! Where faults happen: ombx built with one MPI, the interposed library, and the benchmarks that there are.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::interpose::{self, Rule};
use crate::{
    failure::{Failure, Result},
    mpi::Mpi,
    step::{Step, shown},
    workspace::{Workspace, cargo},
};

/// All that a case of one MPI needs.
pub(super) struct Stage {
    pub(super) mpi: Mpi,
    pub(super) ombx: PathBuf,
    /// The interposed library.
    pub(super) library: PathBuf,
    pub(super) benches: Vec<Bench>,
}

/// A registered benchmark, as `ombx list --json` has it.
pub(super) struct Bench {
    pub(super) name: String,
    /// Why it cannot run with this MPI.
    pub(super) unavailable: Option<String>,
}

impl Stage {
    pub(super) fn set(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let ombx = target.join("debug/ombx");
        if build {
            let mut command = cargo();
            command.args(["build", "-p", "ombx-cli"]).current_dir(&workspace.root);
            mpi.build_with(&mut command, &workspace.target);
            let step = Step::run(format!("{} ombx", mpi.flavour), &mut command);
            if step.failed() {
                return Err(Failure::Missing(format!("{} was not built (see above)", step.what)));
            }
        } else if !ombx.is_file() {
            return Err(Failure::Missing(format!("{} is not built", ombx.display())));
        }
        let library = interpose::library(mpi, &target.join("faults"))?;
        let benches = benches(&ombx)?;
        Ok(Self { mpi: mpi.clone(), ombx, library, benches })
    }

    /// Arguments of `ombx run` that put rules into ranks.
    pub(super) fn arguments(&self, rules: &[Rule], log: &Path) -> Vec<String> {
        if rules.is_empty() {
            return Vec::new();
        }
        interpose::arguments(self.mpi.flavour, &self.library, rules, log)
    }

    pub(super) fn bench(&self, name: &str) -> Option<&Bench> {
        self.benches.iter().find(|bench| bench.name == name)
    }
}

fn benches(ombx: &Path) -> Result<Vec<Bench>> {
    let mut command = Command::new(ombx);
    command.args(["list", "--json"]).stdin(Stdio::null());
    let output =
        command.output().map_err(|source| Failure::Run { program: ombx.display().to_string(), source })?;
    if !output.status.success() {
        return Err(Failure::Command { command: shown(&command), detail: output.status.to_string() });
    }
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)
        .map_err(|source| Failure::Output { program: "ombx list --json", source })?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bench = |value: &Value| Bench {
        name: text(&value["name"]),
        unavailable: value["available"].as_str().map(str::to_owned),
    };
    Ok(list.iter().map(bench).collect())
}
