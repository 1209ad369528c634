//! Judge of wrong command lines, in a process of its own.

use std::{
    env,
    ffi::OsString,
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsFd,
        unix::{
            fs::{FileExt, PermissionsExt},
            process::ExitStatusExt,
        },
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::{self, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use ombx_core::benchmark::Registry;
use ombx_host::since::Since;
use ombx_launch::{stderr, this_process};
use ombx_record::error::Kind;
use rustix::fs::fstat;
use tempfile::TempDir;

use crate::commands;

/// Variable by which a test tells its child process to judge, with the directory of both processes.
const DIRECTORY: &str = "OMBX_TEST_DIRECTORY";
/// Variable with the seed of random command lines.
pub(super) const SEED: &str = "OMBX_TEST_SEED";
/// Variables of this process that the child process gets too.
const PASSED_ON: [&str; 3] = ["LD_LIBRARY_PATH", "LLVM_PROFILE_FILE", SEED];
/// Names in the search path of the child process. Each is a program that notes its start and fails.
const PROGRAMS: [&str; 7] = ["mpiexec", "mpirun", "srun", "ssh", "scontrol", "sh", "date"];
/// Characters of a command line that are shown.
const SHOWN: usize = 200;
/// Time limit of the child process, for a command line that never ends.
const LIMIT: Duration = Duration::from_secs(300);
/// Interval at which its end is looked for.
const POLL: Duration = Duration::from_millis(5);

/// Command lines are judged in a process with a search path of [`PROGRAMS`], an empty working directory, and files as output. No
/// other program writes in the working directory, so that `./absent` names nothing.
pub(super) struct Judge {
    pub(super) registry: Registry,
    pub(super) parser: clap::Command,
    directory: PathBuf,
    /// File with the command line that is judged, for a process that is killed.
    line: File,
}

/// What the command lines of this process have done so far.
#[derive(PartialEq, Eq)]
struct Traces {
    /// Bytes on standard output.
    printed: i64,
    /// Bytes on standard error.
    complained: i64,
    /// Names in the working directory.
    files: usize,
    /// Starts of the programs in the search path.
    starts: String,
    /// Page faults of processes that have ended, which every process has.
    faults: u64,
}

impl Traces {
    /// Returns what one command line has done.
    fn since(&self, before: &Traces) -> String {
        let starts = self.starts.lines().skip(before.starts.lines().count()).collect::<Vec<_>>().join(", ");
        let done = [
            (self.printed > before.printed, "prints to standard output".to_owned()),
            (self.complained > before.complained, "prints to standard error".to_owned()),
            (self.files != before.files, "changes the working directory".to_owned()),
            (!starts.is_empty(), format!("starts {starts}")),
            (self.faults > before.faults, "waits for a process".to_owned()),
        ];
        let done: Vec<String> =
            done.into_iter().filter(|(is_done, _)| *is_done).map(|(_, what)| what).collect();
        done.join(", ")
    }
}

impl Judge {
    /// Runs the body of the test with this path in a child process. Fails with its output unless it succeeds.
    pub(super) fn alone(test: &str, body: impl FnOnce(&Judge)) {
        if let Some(judge) = Judge::from_environment() {
            return body(&judge);
        }
        let directory = tempfile::tempdir().unwrap();
        let status = child(&directory, test);
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap_or_default();
        let stdout = text("stdout");
        // A test of another name would be no test, and no failure.
        assert!(
            status.is_some_and(|status| status.success()) && stdout.contains("1 passed"),
            "{test}: {status:?}, last with {}\n{stdout}\n{}",
            text("line").trim_end(),
            text("stderr")
        );
    }

    /// Runs the body of the test with this path in a child process, and returns the signal that has ended it. In the child process it does
    /// not return.
    pub(super) fn signal_that_ends(test: &str, body: impl FnOnce(&Judge)) -> Option<i32> {
        if let Some(judge) = Judge::from_environment() {
            body(&judge);
            process::exit(0);
        }
        child(&tempfile::tempdir().unwrap(), test).and_then(|status| status.signal())
    }

    /// Returns the judge of the child process; `None` in its parent.
    fn from_environment() -> Option<Judge> {
        let directory = PathBuf::from(env::var_os(DIRECTORY)?);
        let registry = Registry::load().unwrap();
        let parser = commands::parser(&registry);
        let line = File::create(directory.join("line")).unwrap();
        Some(Judge { registry, parser, directory, line })
    }

    /// Replaces a program in the search path by a script.
    pub(super) fn set_program(&self, name: &str, script: &str) {
        fs::write(self.directory.join("programs").join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    }

    /// Writes a file in the working directory and returns its name.
    pub(super) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        fs::write(self.directory.join("files").join(name), contents).unwrap();
        name.to_owned()
    }

    /// Returns the path of a program that notes its start.
    pub(super) fn program(&self) -> String {
        self.directory.join("programs/mpiexec").display().to_string()
    }

    /// Judges command lines, each with a part that its error must contain.
    pub(super) fn judge_all<'a, W: Into<OsString>>(
        &self,
        lines: impl IntoIterator<Item = (Vec<W>, &'a str)>,
    ) {
        let judged = lines.into_iter().map(|(words, part)| self.judge(words, part));
        let (count, wrong) = judged.fold((0, Vec::new()), |(count, mut wrong), judged| {
            wrong.extend(judged.err());
            (count + 1, wrong)
        });
        assert!(count > 0);
        assert!(wrong.is_empty(), "{} of {count} mistakes:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// Judges one command line as `main` runs it. It must be a usage error of one line before it does anything else.
    pub(super) fn judge<W: Into<OsString>>(&self, words: Vec<W>, part: &str) -> Result<(), String> {
        let words: Vec<OsString> =
            ["ombx".into()].into_iter().chain(words.into_iter().map(W::into)).collect();
        let shown: String = format!("{words:?}").chars().take(SHOWN).collect();
        // The line before may be longer.
        self.line.write_all_at(format!("{shown:SHOWN$}").as_bytes(), 0).unwrap();
        let before = self.traces();
        let run = || commands::execute(&self.registry, &self.parser, this_process::normalized(words));
        let ended = catch_unwind(AssertUnwindSafe(run));
        let after = self.traces();
        let wrong = |what: String| Err(format!("{shown}: {what}"));
        let error = match ended {
            Err(_) => return wrong("it panics".into()),
            Ok(Ok(code)) => return wrong(format!("it is accepted, with exit code {code}")),
            Ok(Err(error)) => error,
        };
        let line = stderr::printable(&error.to_string());
        let length = line.chars().count();
        match () {
            () if before != after => wrong(format!("it {}", after.since(&before))),
            () if error.kind() != Kind::Usage => wrong(format!("{:?}: {line}", error.kind())),
            () if line.contains(char::is_control) => wrong(format!("{line:?} is not one line")),
            () if !(11..=8000).contains(&length) => wrong(format!("{length} characters: {line}")),
            () if !line.contains(part) => wrong(format!("{line:?} does not contain {part:?}")),
            () => Ok(()),
        }
    }

    /// Returns what a correct command line does.
    pub(super) fn done_by(&self, words: &[&str]) -> String {
        let before = self.traces();
        let why = self.judge(words.to_vec(), "").expect_err("a correct command line");
        assert!(why.contains("it is accepted"), "{why}");
        self.traces().since(&before)
    }

    fn traces(&self) -> Traces {
        let written = |to: &dyn AsFd| fstat(to.as_fd()).unwrap().st_size;
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        // Field 11 of proc_pid_stat(5). Field 2, in parentheses, may contain blanks.
        let faults = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(8));
        Traces {
            printed: written(&io::stdout()),
            complained: written(&io::stderr()),
            files: fs::read_dir(self.directory.join("files")).unwrap().count(),
            starts: fs::read_to_string(self.directory.join("starts")).unwrap_or_default(),
            faults: faults.unwrap().parse().unwrap(),
        }
    }
}

/// Starts this program with one test, and returns how it ended; `None` if it did not.
fn child(directory: &TempDir, test: &str) -> Option<ExitStatus> {
    let path = |name: &str| directory.path().join(name);
    for name in ["files", "programs"] {
        fs::create_dir(path(name)).unwrap();
    }
    let script = format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\nexit 1\n", path("starts").display());
    for name in PROGRAMS {
        let program = path("programs").join(name);
        fs::write(&program, &script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
    }
    let output = |name: &str| Stdio::from(File::create(path(name)).unwrap());
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).current_dir(path("files"));
    command.env_clear().envs(PASSED_ON.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.env(DIRECTORY, directory.path()).env("PATH", path("programs"));
    command.env("OMBX_MPIEXEC", path("programs/mpiexec"));
    command.stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr"));
    let mut child = command.spawn().unwrap();
    let since = Since::now();
    while since.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(POLL);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// The judge would accept anything if it saw nothing.
#[test]
fn the_judge_sees_what_a_line_does() {
    Judge::alone("commands::mistakes::judge::the_judge_sees_what_a_line_does", |judge| {
        for (line, seen) in [
            ("list", "it is accepted, with exit code 0"),
            ("show absent.jsonl", "Storage: absent.jsonl: "),
            ("list nothing", "does not contain \"anything\""),
            ("run p2p.latency --sizes 8", "/mpiexec --version"),
            // Ranks over sockets are started by this program.
            ("run sockets.latency --sizes 8", "waits for a process"),
        ] {
            let judged = judge.judge(line.split(' ').collect(), "anything");
            let why = judged.expect_err(line);
            assert!(why.contains(seen), "{why}");
        }
        assert_eq!(judge.done_by(&["list"]), "prints to standard output");
    });
}
