//! Building the programs with one MPI, starting them alike, and reading what they print.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ombx_core::{
    benchmark::figure::Figure,
    result::{Measurement, Outcome},
};
use ombx_results::file;
use serde_json::Value;

use super::{
    counts::{self, Counts, Mode},
    row::{Room, Row},
};
use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Mpi},
    release,
    step::{Step, shown},
    workspace::Workspace,
};

/// A launch that takes longer has hung; both families of launchers end the job then.
const DEADLINE_SECONDS: &str = "300";

/// The C programs, built into this one so that they cannot part from it.
const SOURCES: [(&str, &str); 4] = [
    ("room.h", include_str!("reference/room.h")),
    ("two_sided.c", include_str!("reference/two_sided.c")),
    ("one_sided.c", include_str!("reference/one_sided.c")),
    ("collective.c", include_str!("reference/collective.c")),
];

/// Which ombx is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// As it is released; built first, unless it is to be taken as it stands.
    Release { build: bool },
    /// As tests have it.
    Debug,
}

/// All programs, built with one MPI.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// For files of ours, in the target directory.
    pub(crate) room: PathBuf,
}

/// What a program told of one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    /// Nanoseconds of an iteration, by sample; of a pure operation its median alone.
    pub(crate) samples: Vec<f64>,
    pub(crate) batch: u64,
    /// Equal parts of an iteration, of which the figure is one.
    pub(crate) legs: u64,
}

/// What a launch of ombx told.
#[derive(Debug)]
pub(crate) struct Launched {
    /// Row by row; the reason where it was not measured.
    pub(crate) told: Vec<std::result::Result<Told, String>>,
    /// First line of what the library says it is.
    pub(crate) library: String,
    pub(crate) started: String,
}

impl Programs {
    pub(crate) fn build(mpi: &Mpi, workspace: &Workspace, how: Build) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let profile = if how == Build::Debug { "debug" } else { "release" };
        let mut ombx = target.join(profile).join("ombx");
        // Of the tests that this one may be part of.
        if let Some(tested) = env::var_os("OMBX_BIN").filter(|_| how == Build::Debug) {
            ombx = tested.into();
        }
        let room = ombx.ancestors().nth(2).unwrap_or(&target).join("fidelity");
        let programs = Self { mpi: mpi.clone(), ombx, room };
        if how == (Build::Release { build: true }) {
            release::built(mpi, workspace, &workspace.target)?;
        } else if !programs.ombx.is_file() {
            return Err(Failure::Missing(format!("{} is not built", programs.ombx.display())));
        }
        fs::create_dir_all(&programs.room).map_err(Failure::file(&programs.room))?;
        for (name, text) in SOURCES {
            let path = programs.room.join(name);
            fs::write(&path, text).map_err(Failure::file(path))?;
        }
        for program in ["two_sided", "one_sided", "collective"] {
            let mut command = Command::new(&mpi.mpicc);
            // MPICH's MPI_STATUSES_IGNORE is an address of no array, of which gcc warns.
            command.args(["-O2", "-g", "-Wall", "-Wno-stringop-overflow", "-pthread", "-o"]);
            command.arg(programs.room.join(program)).arg(programs.room.join(program).with_extension("c"));
            Step::run(format!("{} {program}.c", mpi.flavour), &mut command).built()?;
        }
        Ok(programs)
    }

    /// The C loops of a room: nanoseconds of an iteration, by sample, row by row.
    pub(crate) fn run_reference(
        &self,
        room: Room,
        rows: &[&Row],
        counts: &[Counts],
    ) -> Result<Vec<Vec<f64>>> {
        let mut command = self.mpiexec(room);
        command.args(["-n", "2"]).args(self.reference_words(room, rows, counts));
        let text = output(&mut command)?;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
        let each = lines.iter().zip(counts).map(|(line, counts)| reference_samples(line, counts));
        let told = each.collect::<Option<Vec<_>>>().filter(|told| told.len() == rows.len());
        told.ok_or_else(|| unreadable(&command, &text))
    }

    /// ombx on the rows of a room, in one launch.
    pub(crate) fn run_ombx(&self, room: Room, rows: &[&Row], mode: Mode<'_>) -> Result<Launched> {
        let mut command = self.mpiexec(room);
        command.args(["-n", "2"]).args(self.ombx_words(&counts::suite(rows, mode, true))?);
        // A row whose data arrives wrong ends it with another code than 0, and with a complete result.
        let text = output_if_complete(&mut command)?;
        launched(rows, &text).ok_or_else(|| unreadable(&command, &text))
    }

    pub(crate) fn reference_words(&self, room: Room, rows: &[&Row], counts: &[Counts]) -> Vec<String> {
        let program = self.room.join(room.program()).display().to_string();
        [program].into_iter().chain(counts::words(room, rows, counts)).collect()
    }

    pub(crate) fn ombx_words(&self, suite: &str) -> Result<Vec<String>> {
        let path = self.room.join("fidelity.toml");
        fs::write(&path, suite).map_err(Failure::file(&path))?;
        let path = path.display().to_string();
        let words = ["run", &path, "--format", "jsonl", "--quiet"].map(str::to_owned);
        Ok([self.ombx.display().to_string()].into_iter().chain(words).collect())
    }

    /// The launcher with what is common to both programs: every rank bound to a core of its own, and a library whose
    /// speed does not depend on what was sent before.
    pub(crate) fn mpiexec(&self, room: Room) -> Command {
        let mut command = Command::new(&self.mpi.mpiexec);
        command.args(match self.mpi.flavour {
            Flavour::Mpich => ["-bind-to", "core"],
            Flavour::OpenMpi => ["--bind-to", "core"],
        });
        self.mpi.launch_with(&mut command);
        if self.mpi.flavour == Flavour::OpenMpi && room == Room::Collective {
            // In its rings two ranks that send at once meet in the same half of a cache line or not, by all that was
            // sent before, in a C loop as in ombx.
            command.env("OMPI_MCA_btl_vader_fbox_max", "0");
        }
        // Open MPI looks for a remote shell even where it needs none.
        command.env("OMPI_MCA_plm_rsh_agent", "sh").env("MPIEXEC_TIMEOUT", DEADLINE_SECONDS);
        command.stdin(Stdio::null());
        command
    }
}

/// Standard output of a command that succeeded.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let (text, failure) = run(command)?;
    failure.map_or(Ok(text), Err)
}

/// Standard output of a command, whose result says by itself whether it is complete.
fn output_if_complete(command: &mut Command) -> Result<String> {
    let (text, failure) = run(command)?;
    match failure {
        Some(failure) if !text.contains("\"kind\":\"end\"") => Err(failure),
        _ => Ok(text),
    }
}

fn run(command: &mut Command) -> Result<(String, Option<Failure>)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Failure::Run { program, source })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok((text, None));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let failure = Failure::Command { command: shown(command), detail: format!("{}: {last}", output.status) };
    Ok((text, Some(failure)))
}

/// Reads a file, or says which.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Failure::file(path))
}

fn unreadable(command: &Command, text: &str) -> Failure {
    let detail = match text.lines().last() {
        Some(line) => format!("its output ends with: {}", line.chars().take(200).collect::<String>()),
        None => "no output".into(),
    };
    Failure::Command { command: shown(command), detail }
}

fn reference_samples(line: &str, counts: &Counts) -> Option<Vec<f64>> {
    let value: Value = serde_json::from_str(line).ok()?;
    let times = value["elapsed_ns"].as_array()?.iter();
    let each = times.map(|ns| Some(ns.as_f64()? / counts.batch as f64)).collect::<Option<Vec<f64>>>();
    each.filter(|each| each.len() as u64 == counts.samples)
}

/// The rows that a launch of ombx printed, amid words of the launcher; `None` where they are not those that were asked for.
fn launched(rows: &[&Row], text: &str) -> Option<Launched> {
    let records: String =
        text.lines().filter(|line| line.starts_with('{')).flat_map(|line| [line, "\n"]).collect();
    let file = file::read(records.as_bytes()).ok()?;
    let [run] = file.runs.as_slice() else { return None };
    run.end?;
    // Of an operation whose ranks acknowledge in turn, the row of the slowest is one of the others again.
    let is_own = |row: &&Measurement| row.axes.get("acker").is_none_or(|acker| acker != "slowest");
    let found: Vec<&Measurement> = run.rows.iter().filter(is_own).collect();
    if found.len() != rows.len() || found.iter().zip(rows).any(|(found, row)| found.bench != row.benchmark) {
        return None;
    }
    let first = |words: &str| words.lines().next().unwrap_or_default().to_owned();
    Some(Launched {
        told: rows.iter().zip(found).map(|(row, found)| told(row, found)).collect(),
        library: first(&run.run.library),
        started: run.run.started.clone(),
    })
}

fn told(row: &Row, found: &Measurement) -> std::result::Result<Told, String> {
    if let Outcome::Skipped(why) | Outcome::Failed(why) = &found.outcome {
        return Err(why.clone());
    }
    let missing = || "the row has no samples".to_owned();
    let (work, first) = (found.work.ok_or_else(missing)?, found.samples.first().ok_or_else(missing)?);
    let batch = first.batch;
    let slowest = |at: usize| found.samples.iter().filter_map(|rank| rank.elapsed_ns.get(at)).max();
    let per_iteration = |ns: &u64| *ns as f64 / batch as f64;
    let mut samples: Vec<f64> = (0..first.elapsed_ns.len()).filter_map(slowest).map(per_iteration).collect();
    if row.pure {
        let Some(Figure::Value(us)) = found.figures.get("pure_us") else { return Err(missing()) };
        samples = vec![us * 1e3];
    }
    Ok(Told { samples, batch, legs: work.legs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::row;

    const RUN: &str = r#"{"kind":"run","schema":{"name":"ombx.result","major":1,"minor":0},"run":"r","argv":[],"started":"2026-01-02T03:04:05Z","ombx":{"version":"0","profile":"release"},"fabric":{"name":"mpi","library":"MPICH 4\nmore"},"ranks":[],"clock":{"source":"tsc","resolution_ns":1,"overhead_ns":9},"plan":{},"env":{}}"#;
    const CASE: &str = r#"{"kind":"case","bench":"p2p.latency","key":"p2p.latency/bytes=8","metric":"latency","bytes":8,"ranks":2,"work":{"bytes":16,"ops":2,"legs":2},"across":"slowest","outcome":"ok","check":"passed","samples":[{"rank":0,"batch":10,"elapsed_ns":[100,110]},{"rank":1,"batch":10,"elapsed_ns":[90,120]}],"trust":[]}"#;
    const END: &str = r#"{"kind":"end","outcome":"complete","cases":1,"skipped":0,"failed":0,"corrupt":0}"#;

    fn told_of(text: &str) -> Option<std::result::Result<Told, String>> {
        let rows = row::matching("p2p.latency");
        launched(&[&rows[0]], text).map(|launched| launched.told[0].clone())
    }

    #[test]
    fn a_result_of_ombx_is_reduced_to_the_slowest_rank_of_each_sample() {
        let told = told_of(&format!("noise\n{RUN}\n{CASE}\n{END}\n")).unwrap().unwrap();
        assert_eq!(told, Told { samples: vec![10.0, 12.0], batch: 10, legs: 2 });
    }

    #[test]
    fn a_row_that_was_not_measured_has_its_reason_and_another_row_is_no_result() {
        let skipped = CASE.replace("\"ok\"", "\"skipped\",\"reason\":\"needs MPI 4\"");
        assert_eq!(told_of(&format!("{RUN}\n{skipped}\n{END}\n")), Some(Err("needs MPI 4".into())));
        let other = CASE.replace("\"p2p.latency\"", "\"p2p.bw\"");
        assert_eq!(told_of(&format!("{RUN}\n{other}\n{END}\n")), None);
        assert_eq!(told_of(&format!("{RUN}\n{CASE}\n")), None);
    }

    #[test]
    fn a_line_of_the_reference_has_the_samples_that_were_asked_for() {
        let counts = Counts { batch: 1000, samples: 2, warmup: 1 };
        let line = "{\"row\":\"ping\",\"elapsed_ns\":[2000.0,3000.5]}";
        assert_eq!(reference_samples(line, &counts), Some(vec![2.0, 3.0005]));
        assert_eq!(reference_samples(line, &Counts { samples: 3, ..counts }), None);
        assert_eq!(reference_samples("{}", &counts), None);
    }
}
