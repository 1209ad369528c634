//! Directory of a run, `runs/ID`: what a run writes, and what `--resume` reads.

use std::{
    fmt, fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use ombx_record::{
    error::{Error, Result},
    file::{self, RunWithRows},
    regular_file::{LONGEST_TEXT, read_found_text},
    result::RunOutcome,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    plan::Job,
    remote::{at, output_of},
};

/// Directory of a run.
pub(crate) struct RunDirectory {
    pub(crate) id: String,
    pub(crate) directory: PathBuf,
}

/// How a job ended, as in `job.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub(crate) enum Ending {
    /// The result file is complete. Exit codes 4 and 5 mean skipped rows and wrong data.
    Complete { exit_code: i32 },
    /// The result file is missing or incomplete.
    Failed { reason: String },
}

/// A job and how it ended.
pub(crate) struct FinishedJob {
    pub(crate) job: Job,
    pub(crate) ending: Ending,
}

impl RunDirectory {
    /// Creates the directory of a new run.
    pub(crate) fn create(runs: &Path) -> Result<Self> {
        let id = ombx_host::environment::run_id();
        let directory = runs.join(&id);
        fs::create_dir_all(runs).and_then(|()| fs::create_dir(&directory)).map_err(at(&directory))?;
        for part in ["jobs", "preflight"] {
            fs::create_dir_all(directory.join(part)).map_err(at(&directory))?;
        }
        let directory = directory.canonicalize().map_err(at(&directory))?;
        let latest = runs.join("latest");
        let _ = fs::remove_file(&latest);
        let _ = std::os::unix::fs::symlink(&id, &latest);
        Ok(Self { id, directory })
    }

    /// Finds the last run of this user with the same plan. Another user could have put links into a directory of theirs.
    pub(crate) fn latest(runs: &Path, plan: &Value) -> Option<Self> {
        let mut found: Vec<PathBuf> = fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| {
            let text = || read_found_text(&path.join("plan.json"), LONGEST_TEXT).unwrap_or_default();
            is_own(path) && serde_json::from_str::<Value>(&text()).is_ok_and(|old| old == *plan)
        });
        // An id begins with its time, so that the largest one is the last.
        let directory = found.into_iter().max()?.canonicalize().ok()?;
        let id = directory.file_name()?.to_string_lossy().into_owned();
        Some(Self { id, directory })
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(at(&path))
    }

    /// Writes a value as indented JSON.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(|e| Error::storage(format!("{name}: {e}")))?;
        self.write(name, &(text + "\n"))
    }

    /// Returns the directory of a job, which may not exist yet.
    pub(crate) fn job(&self, job: &Job) -> PathBuf {
        self.directory.join("jobs").join(&job.name)
    }

    /// Reads how a job ended; none if it did not end.
    pub(crate) fn ending(&self, job: &Job) -> Option<Ending> {
        serde_json::from_str(&read_found_text(&self.job(job).join("job.json"), LONGEST_TEXT).ok()?).ok()
    }

    /// Returns the result files of a job: those of earlier attempts first.
    pub(crate) fn results(&self, job: &Job) -> Vec<PathBuf> {
        let directory = self.job(job);
        let earlier =
            (1..).map(|n| directory.join(format!("results.{n}.jsonl"))).take_while(|path| path.exists());
        earlier.chain([directory.join("results.jsonl")]).filter(|path| path.exists()).collect()
    }

    /// Reads all runs of ombx in a job, also those of incomplete attempts.
    pub(crate) fn runs(&self, job: &Job) -> Vec<RunWithRows> {
        let files = self
            .results(job)
            .into_iter()
            .filter_map(|path| file::read_found(&path).ok())
            .flat_map(|file| file.runs);
        files.collect()
    }

    /// Writes the checksums of all files of the run.
    pub(crate) fn write_checksums(&self) -> Result<()> {
        let script = "find * -type f ! -path SHA256SUMS -print0 | LC_ALL=C sort -z | xargs -0 sha256sum --";
        let sums = output_of(Command::new("sh").args(["-c", script]).current_dir(&self.directory));
        self.write("SHA256SUMS", &(sums + "\n"))
    }
}

/// Renames the files of an earlier attempt of a job. Returns whether there was an attempt.
pub(crate) fn keep_earlier_attempt(directory: &Path) -> bool {
    let free = (1..).find(|n| !directory.join(format!("results.{n}.jsonl")).exists()).unwrap_or(1);
    for (name, extension) in [("results", "jsonl"), ("stderr", "txt"), ("job", "json")] {
        let _ = fs::rename(
            directory.join(format!("{name}.{extension}")),
            directory.join(format!("{name}.{free}.{extension}")),
        );
    }
    for name in ["submitted", "started", "exit"] {
        let _ = fs::remove_file(directory.join(name));
    }
    fs::remove_file(directory.join("run.sh")).is_ok()
}

/// Returns whether a path is a directory of this user, which only this user and its group can write.
fn is_own(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path)
        .is_ok_and(|file| file.is_dir() && file.uid() == user && file.mode() & 0o002 == 0)
}

/// Returns whether a result file holds only complete runs, and at least one.
pub(crate) fn is_complete(path: &Path) -> bool {
    let Ok(file) = file::read_found(path) else { return false };
    !file.runs.is_empty() && file.runs.iter().all(|run| matches!(run.end, Some((RunOutcome::Complete, _))))
}

/// Returns the contents of `plan.json`. A run with the same plan can be resumed.
pub(crate) fn plan(rounds: &[Vec<Job>], hosts: &[&str], options: Value) -> Value {
    let job = |job: &Job| {
        let names: Vec<&str> = job.hosts.iter().map(|&host| hosts[host]).collect();
        json!({"name": job.name, "stage": job.stage.name(), "hosts": names, "per_host": job.ranks_per_host})
    };
    let rounds: Vec<Vec<Value>> = rounds.iter().map(|round| round.iter().map(job).collect()).collect();
    json!({"options": options, "rounds": rounds})
}

/// Prints a print_line. A closed standard output is ignored: all results are in files.
pub(crate) fn print_line(text: impl fmt::Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}
