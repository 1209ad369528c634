//! Running a script on a host, or here, with a deadline. Scripts go in by standard input: no remote shell takes words apart.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ombx_core::system::clock::Since;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::failure::{Failure, Result};

/// Set by SIGINT and its kin: everything that waits stops waiting.
pub(super) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

const NAP: Duration = Duration::from_millis(20);
/// After being told to end.
const GRACE: Duration = Duration::from_secs(2);

/// Where a script runs.
#[derive(Clone, Debug)]
pub(super) enum Place<'a> {
    Here,
    Host { name: &'a str, ssh_config: Option<&'a Path> },
}

/// Files of one script: `NAME.sh`, `NAME.out`, `NAME.err` in a directory.
pub(super) struct Files {
    pub(super) script: PathBuf,
    pub(super) stdout: PathBuf,
    pub(super) stderr: PathBuf,
}

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Code(i32),
    /// By a signal, which is not ours.
    Killed,
    Deadline,
    Interrupted,
}

impl Files {
    pub(super) fn named(directory: &Path, name: &str) -> Self {
        let file = |end: &str| directory.join(format!("{name}.{end}"));
        Self { script: file("sh"), stdout: file("out"), stderr: file("err") }
    }

    pub(super) fn text(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap_or_default()
    }

    /// The last words on standard error, in one line.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read(&self.stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let ours = lines.iter().rev().find(|line| line.starts_with("ombx: "));
        // Open MPI and Hydra name the host of a process that died.
        let host = lines.iter().find(|line| line.contains(" on node ") || line.contains(" RUNNING AT "));
        let words = [ours.or(lines.last()), host].into_iter().flatten();
        let words: Vec<String> =
            words.map(|line| line.trim_start_matches('=').trim().chars().take(300).collect()).collect();
        words.join("; ")
    }
}

impl Place<'_> {
    /// The command that reads a script from its standard input.
    pub(super) fn shell(&self, words: &str) -> Command {
        match self {
            Place::Here => {
                let mut command = Command::new("sh");
                match words {
                    "" => command.arg("-s"),
                    words => command.args(["-c", words]),
                };
                command
            }
            Place::Host { name, ssh_config } => {
                let mut command = Command::new("ssh");
                if let Some(config) = ssh_config {
                    command.arg("-F").arg(config);
                }
                command.args(SSH_OPTIONS).args(["--", name]);
                command.arg(if words.is_empty() { "sh -s" } else { words });
                command
            }
        }
    }

    /// Runs a script to its end, to its deadline, or until the user has had enough.
    pub(super) fn run(&self, script: &str, files: &Files, limit: Duration) -> Result<Ended> {
        fs::write(&files.script, script).map_err(Failure::file(&*files.script))?;
        let input = File::open(&files.script).map_err(Failure::file(&*files.script))?;
        self.feed(self.shell(""), input, files, limit)
    }

    /// The same, but the user's impatience does not count.
    pub(super) fn run_to_the_end(&self, script: &str, files: &Files, limit: Duration) -> Result<Ended> {
        fs::write(&files.script, script).map_err(Failure::file(&*files.script))?;
        let input = File::open(&files.script).map_err(Failure::file(&*files.script))?;
        Ok(wait(start(self.shell(""), input, files)?, limit, || false))
    }

    /// Runs a command with a file as its input.
    pub(super) fn feed(
        &self,
        command: Command,
        input: File,
        files: &Files,
        limit: Duration,
    ) -> Result<Ended> {
        let child = start(command, input, files)?;
        Ok(wait(child, limit, || INTERRUPTED.load(Ordering::Relaxed)))
    }
}

/// Starts a command as the first of a process group, with its words in files: an orphan may hold a pipe open for ever.
fn start(mut command: Command, input: File, files: &Files) -> Result<Child> {
    let create = |path: &Path| File::create(path).map_err(Failure::file(path));
    command.stdin(input).stdout(create(&files.stdout)?).stderr(create(&files.stderr)?).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|source| Failure::Run { program, source })
}

/// For unattended use: no questions, and a dead link is noticed.
pub(super) const SSH_OPTIONS: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=5",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// Waits for a child that leads a process group, and ends the group when it takes too long.
fn wait(mut child: Child, limit: Duration, interrupted: impl Fn() -> bool) -> Ended {
    let since = Since::now();
    let group = Pid::from_child(&child);
    let why = loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().map_or(Ended::Killed, Ended::Code),
            Ok(None) if interrupted() => break Ended::Interrupted,
            Ok(None) if since.elapsed() < limit => std::thread::sleep(NAP),
            Ok(None) | Err(_) => break Ended::Deadline,
        }
    };
    let _ = kill_process_group(group, Signal::TERM);
    let told = Since::now();
    while told.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(NAP);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    why
}

/// A program that runs unattended here and whose output is wanted; empty when it fails.
pub(super) fn ask(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_deadline_and_its_words_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::named(directory.path(), "x");
        let run = |script: &str, limit| Place::Here.run(script, &files, limit).unwrap();
        assert_eq!(run("echo a; echo b >&2; exit 3", Duration::from_secs(30)), Ended::Code(3));
        assert_eq!((files.text().as_str(), files.last_words().as_str()), ("a\n", "b"));
        assert_eq!(run("sleep 60 & sleep 60", Duration::from_millis(300)), Ended::Deadline);
    }

    #[test]
    fn a_host_is_an_argument_of_its_own_after_all_options() {
        let command = Place::Host { name: "n1", ssh_config: Some(Path::new("/c d")) }.shell("");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[..2], ["-F", "/c d"]);
        assert_eq!(words[words.len() - 3..], ["--", "n1", "sh -s"]);
    }
}
