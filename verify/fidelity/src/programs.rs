//! The compared programs: built with one MPI, started in the same way, and their output.

use std::{collections::BTreeSet, env, fs, path::PathBuf, process::Command};

use ombx_core::{
    benchmark::Figure,
    result::{Measurement, Outcome},
};
use ombx_results::file;
use serde_json::Value;

use crate::{
    counts::{self, Counts, Mode},
    row::{Kind, Row},
};
use ombx_toolchain::{
    command::{compile, output, output_and_failure, shown},
    failure::{Failure, Result},
    mpi::{Flavour, Mpi},
    registry::Bench,
    release,
    workspace::Workspace,
};

/// Deadline of a launch. Both launchers end the job then.
const DEADLINE_SECONDS: &str = "300";

/// Sources of the C programs.
const SOURCES: [(&str, &str); 3] = [
    ("two_sided.c", include_str!("reference/two_sided.c")),
    ("one_sided.c", include_str!("reference/one_sided.c")),
    ("collective.c", include_str!("reference/collective.c")),
];

/// Build of ombx that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Release build; `build` says whether to build it first or to use the existing binary.
    Release { build: bool },
    /// Debug build of the tests.
    Debug,
}

/// Programs that were built with one MPI.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) mpi: Mpi,
    pub(crate) ombx: PathBuf,
    /// Directory of the C programs, below the target directory.
    pub(crate) directory: PathBuf,
}

/// Samples of one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples {
    /// Nanoseconds of an iteration, by sample; only the median for the pure time of a nonblocking operation.
    pub(crate) ns: Vec<f64>,
    pub(crate) batch: u64,
    /// Number of equal parts of an iteration; the figure is the time of one.
    pub(crate) legs: u64,
}

/// Results of a launch of ombx.
#[derive(Debug)]
pub(crate) struct Launched {
    /// Row by row; the reason if it was not measured.
    pub(crate) rows: Vec<std::result::Result<Samples, String>>,
    /// First line of the version string of the library.
    pub(crate) library: String,
    pub(crate) started: String,
}

impl Programs {
    pub(crate) fn build(mpi: &Mpi, workspace: &Workspace, how: Build) -> Result<Self> {
        let target = mpi.target(&workspace.target);
        let profile = if how == Build::Debug { "debug" } else { "release" };
        let mut ombx = target.join(profile).join("ombx");
        // A test that runs this program names its binary.
        if let Some(tested) = env::var_os("OMBX_BIN").filter(|_| how == Build::Debug) {
            ombx = tested.into();
        }
        let directory = ombx.ancestors().nth(2).unwrap_or(&target).join("fidelity");
        let ombx = match how {
            Build::Release { build: true } => release::built(mpi, workspace, &workspace.target)?,
            _ => release::existing(ombx)?,
        };
        let header = directory.join("rows.h");
        fs::create_dir_all(&directory)
            .and_then(|()| fs::write(&header, include_str!("reference/rows.h")))
            .map_err(Failure::file(header))?;
        for (name, text) in SOURCES {
            // MPI_STATUSES_IGNORE of MPICH is not the address of an array, of which gcc warns.
            let options = ["-O2", "-g", "-Wall", "-Wno-stringop-overflow", "-pthread"];
            compile(&mpi.mpicc, &options, &directory, name, text)?;
        }
        Ok(Self { mpi: mpi.clone(), ombx, directory })
    }

    /// Checks that each row of an available benchmark has a C loop, and each C loop a row.
    pub(crate) fn check_loops(&self, rows: &[Row], benches: &[Bench]) -> Result<()> {
        let is_available = |row: &Row| {
            benches.iter().any(|bench| bench.name == row.benchmark && bench.unavailable.is_none())
        };
        for kind in [Kind::TwoSided, Kind::OneSided, Kind::Collective] {
            let program = kind.program();
            let listed = output(Command::new(self.directory.join(program)).arg("--list"))?;
            let loops: BTreeSet<&str> = listed.lines().collect();
            let of_program = || rows.iter().filter(|row| row.kind.program() == program);
            let source = format!("verify/fidelity/src/reference/{program}.c");
            if let Some(row) =
                of_program().find(|row| is_available(row) && !loops.contains(row.reference.as_str()))
            {
                let Row { benchmark, reference, .. } = row;
                return Err(Failure::Missing(format!(
                    "{benchmark} has no C loop to compare with: add a loop named {reference} to {source}"
                )));
            }
            if let Some(unused) = loops.iter().find(|name| of_program().all(|row| row.reference != **name)) {
                return Err(Failure::Missing(format!(
                    "the C loop {unused} belongs to no registered benchmark: remove or rename it in {source}"
                )));
            }
        }
        Ok(())
    }

    /// Runs the C loops of a kind and returns nanoseconds of an iteration, by sample, row by row.
    pub(crate) fn run_reference(
        &self,
        kind: Kind,
        rows: &[&Row],
        counts: &[Counts],
    ) -> Result<Vec<Vec<f64>>> {
        let mut command = self.mpiexec(kind);
        command.args(["-n", "2"]).args(self.reference_words(kind, rows, counts));
        let text = output(&mut command)?;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
        let each = lines.iter().zip(counts).map(|(line, counts)| reference_samples(line, counts));
        let samples = each.collect::<Option<Vec<_>>>().filter(|samples| samples.len() == rows.len());
        samples.ok_or_else(|| unreadable(&command, &text))
    }

    /// Runs ombx on the rows of a kind in one launch.
    pub(crate) fn run_ombx(&self, kind: Kind, rows: &[&Row], mode: Mode<'_>) -> Result<Launched> {
        let mut command = self.mpiexec(kind);
        command.args(["-n", "2"]).args(self.ombx_words(&counts::suite(rows, mode, true))?);
        // A row with wrong data gives an exit code other than 0, but the result is complete.
        let text = output_if_complete(&mut command)?;
        launched(rows, &text).ok_or_else(|| unreadable(&command, &text))
    }

    pub(crate) fn reference_words(&self, kind: Kind, rows: &[&Row], counts: &[Counts]) -> Vec<String> {
        let program = self.directory.join(kind.program()).display().to_string();
        [program].into_iter().chain(counts::words(kind, rows, counts)).collect()
    }

    pub(crate) fn ombx_words(&self, suite: &str) -> Result<Vec<String>> {
        let path = self.directory.join("fidelity.toml");
        fs::write(&path, suite).map_err(Failure::file(&path))?;
        let path = path.display().to_string();
        let words = ["run", &path, "--format", "jsonl", "--quiet"].map(str::to_owned);
        Ok([self.ombx.display().to_string()].into_iter().chain(words).collect())
    }

    /// Returns the launcher with options for both programs: each rank is bound to its own core.
    pub(crate) fn mpiexec(&self, kind: Kind) -> Command {
        let mut command = Command::new(&self.mpi.mpiexec);
        command.args(match self.mpi.flavour {
            Flavour::Mpich => ["-bind-to", "core"],
            Flavour::OpenMpi => ["--bind-to", "core"],
        });
        self.mpi.launch_with(&mut command);
        if self.mpi.flavour == Flavour::OpenMpi && kind == Kind::Collective {
            // Its short-message rings have two states with different speed, which depend on all messages before.
            command.env("OMPI_MCA_btl_vader_fbox_max", "0");
        }
        // Open MPI looks for a remote shell even if it needs none.
        command.env("OMPI_MCA_plm_rsh_agent", "sh").env("MPIEXEC_TIMEOUT", DEADLINE_SECONDS);
        command
    }
}

/// Returns standard output of a command, also after a failure if the result is complete.
fn output_if_complete(command: &mut Command) -> Result<String> {
    let (text, failure) = output_and_failure(command)?;
    match failure {
        Some(failure) if !text.contains("\"kind\":\"end\"") => Err(failure),
        _ => Ok(text),
    }
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

/// Parses the output of a launch of ombx, which may contain messages of the launcher. `None` if it has other rows.
fn launched(rows: &[&Row], text: &str) -> Option<Launched> {
    let records: String =
        text.lines().filter(|line| line.starts_with('{')).flat_map(|line| [line, "\n"]).collect();
    let file = file::read(records.as_bytes()).ok()?;
    let [run] = file.runs.as_slice() else { return None };
    run.end?;
    // For acknowledged broadcasts, the row of the slowest rank repeats one of the others.
    let is_own = |row: &&Measurement| row.axes.get("acker").is_none_or(|acker| acker != "slowest");
    let found: Vec<&Measurement> = run.rows.iter().filter(is_own).collect();
    if found.len() != rows.len() || found.iter().zip(rows).any(|(found, row)| found.bench != row.benchmark) {
        return None;
    }
    let first = |words: &str| words.lines().next().unwrap_or_default().to_owned();
    Some(Launched {
        rows: rows.iter().zip(found).map(|(row, found)| samples(row, found)).collect(),
        library: first(&run.run.library),
        started: run.run.started.clone(),
    })
}

fn samples(row: &Row, found: &Measurement) -> std::result::Result<Samples, String> {
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
    Ok(Samples { ns: samples, batch, legs: work.legs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    const RUN: &str = r#"{"kind":"run","schema":{"name":"ombx.result","major":1,"minor":0},"run":"r","argv":[],"started":"2026-01-02T03:04:05Z","ombx":{"version":"0","profile":"release"},"fabric":{"name":"mpi","library":"MPICH 4\nmore"},"ranks":[],"clock":{"source":"tsc","resolution_ns":1,"overhead_ns":9},"plan":{},"env":{}}"#;
    const CASE: &str = r#"{"kind":"case","bench":"p2p.latency","key":"p2p.latency/bytes=8","metric":"latency","bytes":8,"ranks":2,"work":{"bytes":16,"ops":2,"legs":2},"across":"slowest","outcome":"ok","check":"passed","samples":[{"rank":0,"batch":10,"elapsed_ns":[100,110]},{"rank":1,"batch":10,"elapsed_ns":[90,120]}],"trust":[]}"#;
    const END: &str = r#"{"kind":"end","outcome":"complete","cases":1,"skipped":0,"failed":0,"corrupt":0}"#;

    fn read(text: &str) -> Option<std::result::Result<Samples, String>> {
        launched(&[&row::tests::row("p2p.latency")], text).map(|launched| launched.rows[0].clone())
    }

    #[test]
    fn a_result_of_ombx_is_reduced_to_the_slowest_rank_of_each_sample() {
        let samples = read(&format!("noise\n{RUN}\n{CASE}\n{END}\n")).unwrap().unwrap();
        assert_eq!(samples, Samples { ns: vec![10.0, 12.0], batch: 10, legs: 2 });
    }

    #[test]
    fn a_row_that_was_not_measured_has_its_reason_and_another_row_is_no_result() {
        let skipped = CASE.replace("\"ok\"", "\"skipped\",\"reason\":\"needs MPI 4\"");
        assert_eq!(read(&format!("{RUN}\n{skipped}\n{END}\n")), Some(Err("needs MPI 4".into())));
        let other = CASE.replace("\"p2p.latency\"", "\"p2p.bw\"");
        assert_eq!(read(&format!("{RUN}\n{other}\n{END}\n")), None);
        assert_eq!(read(&format!("{RUN}\n{CASE}\n")), None);
    }

    #[test]
    fn a_line_of_the_c_program_has_the_requested_samples() {
        let counts = Counts { batch: 1000, samples: 2, warmup: 1 };
        let line = "{\"row\":\"ping\",\"elapsed_ns\":[2000.0,3000.5]}";
        assert_eq!(reference_samples(line, &counts), Some(vec![2.0, 3.0005]));
        assert_eq!(reference_samples(line, &Counts { samples: 3, ..counts }), None);
        assert_eq!(reference_samples("{}", &counts), None);
    }
}
