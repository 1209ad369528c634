//! `runs/ID`: what a run leaves behind, and what a later call finds of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ombx_results::file::{self, RunOutcome};
use serde_json::{Value, json};

use super::plan::Job;
use crate::failure::{Failure, Result};

/// The directory of a run.
pub(super) struct Record {
    pub(super) id: String,
    pub(super) directory: PathBuf,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its result file is complete; the exit code tells of skipped rows and wrong data.
    Complete(i32),
    Failed(String),
}

impl Record {
    /// A new run.
    pub(super) fn create(runs: &Path) -> Result<Self> {
        let id = ombx_core::system::environment::run_id();
        let directory = runs.join(&id);
        fs::create_dir_all(directory.join("jobs")).map_err(Failure::file(&*directory))?;
        fs::create_dir_all(directory.join("preflight")).map_err(Failure::file(&*directory))?;
        let directory = directory.canonicalize().map_err(Failure::file(directory))?;
        let latest = runs.join("latest");
        let _ = fs::remove_file(&latest);
        let _ = std::os::unix::fs::symlink(&id, &latest);
        Ok(Self { id, directory })
    }

    /// The run that was last begun with the same plan.
    pub(super) fn latest(runs: &Path, plan: &Value) -> Option<Self> {
        let mut found: Vec<PathBuf> = fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| {
            let text = fs::read_to_string(path.join("plan.json")).unwrap_or_default();
            !path.is_symlink() && serde_json::from_str::<Value>(&text).is_ok_and(|old| old == *plan)
        });
        // Names are times.
        let directory = found.into_iter().max()?.canonicalize().ok()?;
        let id = directory.file_name()?.to_string_lossy().into_owned();
        Some(Self { id, directory })
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(Failure::file(path))
    }

    /// The directory of a job, made if need be.
    pub(super) fn job(&self, job: &Job) -> Result<PathBuf> {
        let path = self.directory.join("jobs").join(&job.name);
        fs::create_dir_all(&path).map_err(Failure::file(&*path))?;
        Ok(path)
    }

    /// How a job ended, if it did.
    pub(super) fn ending(&self, job: &Job) -> Option<Ending> {
        let text = fs::read_to_string(self.directory.join("jobs").join(&job.name).join("job.json")).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        match (value["outcome"].as_str()?, value["exit_code"].as_i64()) {
            ("complete", Some(code)) => Some(Ending::Complete(code as i32)),
            (_, _) => Some(Ending::Failed(value["reason"].as_str().unwrap_or_default().to_owned())),
        }
    }

    /// Result files of a job: of its last attempt, and of earlier ones that did not end well.
    pub(super) fn results(&self, job: &Job) -> Vec<PathBuf> {
        let directory = self.directory.join("jobs").join(&job.name);
        let earlier =
            (1..).map(|n| directory.join(format!("results.{n}.jsonl"))).take_while(|path| path.exists());
        earlier.chain([directory.join("results.jsonl")]).filter(|path| path.exists()).collect()
    }

    /// Moves what a failed attempt left aside, and says whether there was one.
    pub(super) fn put_aside(&self, directory: &Path) -> bool {
        let free = (1..).find(|n| !directory.join(format!("results.{n}.jsonl")).exists()).unwrap_or(1);
        for (name, end) in [("results", "jsonl"), ("stderr", "txt"), ("job", "json")] {
            let _ = fs::rename(
                directory.join(format!("{name}.{end}")),
                directory.join(format!("{name}.{free}.{end}")),
            );
        }
        for name in ["submitted", "started", "exit"] {
            let _ = fs::remove_file(directory.join(name));
        }
        fs::remove_file(directory.join("run.sh")).is_ok()
    }

    /// Checksums of every file of the run.
    pub(super) fn checksums(&self) -> Result<()> {
        let mut files = Vec::new();
        list(&self.directory, &mut files).map_err(Failure::file(&*self.directory))?;
        let mut names: Vec<&Path> =
            files.iter().filter_map(|path| path.strip_prefix(&self.directory).ok()).collect();
        names.retain(|name| *name != Path::new("SHA256SUMS"));
        names.sort_unstable();
        let mut command = Command::new("sha256sum");
        command.current_dir(&self.directory).arg("--").args(names);
        let sums = super::remote::ask(&mut command);
        self.write("SHA256SUMS", &(sums + "\n"))
    }
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => list(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}

/// Whether a result file holds a run that came to its end.
pub(super) fn is_complete(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    let Ok(file) = file::read(std::io::BufReader::new(file)) else { return false };
    !file.runs.is_empty() && file.runs.iter().all(|run| matches!(run.end, Some((RunOutcome::Complete, _))))
}

/// The plan as it is kept: a call with the same plan may go on with a run.
pub(super) fn plan(rounds: &[Vec<Job>], hosts: &[&str], options: Value) -> Value {
    let job = |job: &Job| {
        let names: Vec<&str> = job.hosts.iter().map(|host| hosts[*host]).collect();
        json!({"name": job.name, "stage": job.stage.name(), "hosts": names, "per_host": job.per_host})
    };
    let rounds: Vec<Vec<Value>> = rounds.iter().map(|round| round.iter().map(job).collect()).collect();
    json!({"options": options, "rounds": rounds})
}
