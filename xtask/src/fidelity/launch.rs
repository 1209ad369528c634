//! Building both programs with one MPI, starting them alike, and reading what they print.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::row::{CHUNK, Row};
use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi},
    step::{Step, shown},
    workspace::{Workspace, cargo},
};

/// A launch that takes longer has hung; both families of launchers end the job then.
const DEADLINE_SECONDS: &str = "120";

/// The C program, built into this one so that the two cannot part.
const REFERENCE: &str = include_str!("reference.c");

/// Both programs, built with one MPI.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    pub(crate) reference: PathBuf,
    /// For files of ours, in the target directory.
    pub(crate) room: PathBuf,
}

/// What ombx printed of one row.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    /// Nanoseconds of an iteration, by sample.
    pub(crate) samples: Vec<f64>,
    pub(crate) batch: u64,
    pub(crate) legs: u64,
    /// First line of what the library says it is.
    pub(crate) library: String,
    pub(crate) started: String,
}

impl Programs {
    pub(crate) fn build(mpi: &Mpi, workspace: &Workspace, build: bool) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let room = target.join("fidelity");
        let programs = Self {
            mpi: mpi.clone(),
            ombx: target.join("release/ombx"),
            reference: room.join("reference"),
            room: room.clone(),
        };
        if build {
            let mut command = cargo();
            command.args(["build", "--release", "-p", "ombx-cli"]).current_dir(&workspace.root);
            mpi.build_with(&mut command, &workspace.target);
            done(&Step::run(format!("{} ombx", mpi.flavour), &mut command))?;
        } else if !programs.ombx.is_file() {
            return Err(Failure::Missing(format!("{} is not built", programs.ombx.display())));
        }
        let source = room.join("reference.c");
        let fail = |source| Failure::File { path: room.clone(), source };
        fs::create_dir_all(&room).map_err(fail)?;
        fs::write(&source, REFERENCE).map_err(fail)?;
        let mut command = Command::new(&mpi.mpicc);
        command.args(["-O2", "-Wall", "-o"]).arg(&programs.reference).arg(&source);
        done(&Step::run(format!("{} C reference", mpi.flavour), &mut command))?;
        Ok(programs)
    }

    /// The C loop: nanoseconds of an iteration, by chunk.
    pub(crate) fn run_reference(&self, row: &Row, chunk: u64) -> Result<Vec<f64>> {
        let mut command = self.mpiexec();
        command.args(["-n", "2"]).args(self.reference_words(row, row.iterations, chunk));
        let text = output(&mut command)?;
        reference_chunks(&text, chunk).ok_or_else(|| unreadable(&command, &text))
    }

    /// ombx with the counts of the C loop.
    pub(crate) fn run_fixed(&self, row: &Row) -> Result<Told> {
        self.run_ombx(row, &self.fixed_words(row, row.iterations, CHUNK))
    }

    /// ombx as users run it.
    pub(crate) fn run_default(&self, row: &Row) -> Result<Told> {
        self.run_ombx(row, &self.default_words(row))
    }

    fn run_ombx(&self, row: &Row, words: &[String]) -> Result<Told> {
        let mut command = self.mpiexec();
        command.args(["-n", "2"]).args(words);
        let text = output(&mut command)?;
        let told = told(&text).ok_or_else(|| unreadable(&command, &text))?;
        if told.legs == row.legs {
            return Ok(told);
        }
        let (row, ours, theirs) = (row.name, row.legs, told.legs);
        Err(Failure::Missing(format!("{row} has {theirs} legs in ombx and {ours} here: correct row.rs")))
    }

    pub(crate) fn reference_words(&self, row: &Row, iterations: u64, chunk: u64) -> Vec<String> {
        let counts = [iterations, row.iterations / 10, chunk].map(|count| count.to_string());
        let words = [self.reference.display().to_string(), row.reference.to_owned()];
        words.into_iter().chain(counts).collect()
    }

    pub(crate) fn fixed_words(&self, row: &Row, iterations: u64, batch: u64) -> Vec<String> {
        let counts = [iterations, row.iterations / 10, batch].map(|count| count.to_string());
        let mut words = self.default_words(row);
        for (option, count) in ["--iterations", "--warmup", "--batch"].iter().zip(counts) {
            words.extend([(*option).to_owned(), count]);
        }
        words
    }

    fn default_words(&self, row: &Row) -> Vec<String> {
        let fixed = ["--sizes", "8", "--format", "jsonl", "--quiet"];
        let words = ["run"].iter().chain(row.benchmark).chain(&fixed).map(|word| (*word).to_owned());
        [self.ombx.display().to_string()].into_iter().chain(words).collect()
    }

    /// The launcher with what is common to both programs: every rank bound to a core of its own.
    pub(crate) fn mpiexec(&self) -> Command {
        let mut command = Command::new(&self.mpi.mpiexec);
        command.args(match self.mpi.flavour {
            Flavour::Mpich => ["-bind-to", "core"],
            Flavour::OpenMpi => ["--bind-to", "core"],
        });
        self.mpi.launch_with(&mut command);
        // Open MPI looks for a remote shell even where it needs none.
        command.env("OMPI_MCA_plm_rsh_agent", "sh").env("MPIEXEC_TIMEOUT", DEADLINE_SECONDS);
        command.stdin(Stdio::null());
        command
    }
}

/// Standard output of a command that succeeded.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Failure::Run { program, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Failure::Command { command: shown(command), detail: format!("{}: {last}", output.status) })
}

/// Reads a file, or says which.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|source| Failure::File { path: path.into(), source })
}

fn done(step: &Step) -> Result<()> {
    if step.failed() {
        Err(Failure::Missing(format!("{} was not built (see above)", step.what)))
    } else {
        Ok(())
    }
}

fn unreadable(command: &Command, text: &str) -> Failure {
    let detail = match text.lines().last() {
        Some(line) => format!("its output ends with: {}", line.chars().take(200).collect::<String>()),
        None => "no output".into(),
    };
    Failure::Command { command: shown(command), detail }
}

fn reference_chunks(text: &str, chunk: u64) -> Option<Vec<f64>> {
    let line = text.lines().find(|line| line.starts_with('{'))?;
    let value: Value = serde_json::from_str(line).ok()?;
    per_iteration(&value["elapsed_ns"], chunk)
}

fn told(text: &str) -> Option<Told> {
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let records: Vec<Value> = records.collect();
    let of = |kind: &str| records.iter().find(|record| record["kind"] == kind);
    let (run, case) = (of("run")?, of("case").filter(|case| case["outcome"] == "ok")?);
    let samples = &case["samples"][0];
    let batch = samples["batch"].as_u64()?;
    let word = |value: &Value| Some(value.as_str()?.lines().next()?.to_owned());
    Some(Told {
        samples: per_iteration(&samples["elapsed_ns"], batch)?,
        batch,
        legs: case["work"]["legs"].as_u64()?,
        library: word(&run["fabric"]["library"])?,
        started: word(&run["started"])?,
    })
}

fn per_iteration(elapsed: &Value, batch: u64) -> Option<Vec<f64>> {
    let times = elapsed.as_array()?.iter().map(|ns| Some(ns.as_f64()? / batch as f64));
    times.collect::<Option<Vec<f64>>>().filter(|times| !times.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str =
        r#"{"kind":"run","started":"2026-01-02T03:04:05Z","fabric":{"library":"MPICH 4\nmore"}}"#;
    const CASE: &str =
        r#"{"kind":"case","outcome":"ok","work":{"legs":2},"samples":[{"batch":10,"elapsed_ns":[100,110]}]}"#;

    #[test]
    fn a_result_of_ombx_is_reduced_to_its_samples() {
        let told = told(&format!("noise\n{RUN}\n{CASE}\n")).unwrap();
        assert_eq!((told.samples, told.batch, told.legs), (vec![10.0, 11.0], 10, 2));
        assert_eq!((told.library.as_str(), told.started.as_str()), ("MPICH 4", "2026-01-02T03:04:05Z"));
    }

    #[test]
    fn a_row_that_was_not_measured_is_no_result() {
        assert_eq!(told(&format!("{RUN}\n{}", CASE.replace("ok", "skipped"))), None);
        assert_eq!(told(RUN), None);
    }

    #[test]
    fn the_reference_may_be_surrounded_by_words_of_the_launcher() {
        let text = "warning\n{\"elapsed_ns\":[2000.0,3000.5]}\n";
        assert_eq!(reference_chunks(text, 1000), Some(vec![2.0, 3.0005]));
        assert_eq!(reference_chunks("{\"elapsed_ns\":[]}", 1000), None);
        assert_eq!(reference_chunks("", 1000), None);
    }
}
