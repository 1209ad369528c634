//! Scripts on a host or on this machine, with a time limit. `sh` reads them from standard input, so that no remote shell splits
//! their words.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ombx_host::{remote_shell, signals::end_with_this_thread, since::Since};
use ombx_record::{
    error::{Error, Result},
    regular_file::read_found,
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::parallel;

const POLL: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Longest output of a script in bytes, and longest standard error of a job.
const LONGEST: u64 = 4 << 20;
/// Longest result file of a job in bytes.
const LONGEST_RESULTS: u64 = 1 << 30;
/// Longest part of a line of standard error in a message, in characters.
const LINE: usize = 300;

/// Machine that runs a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Machine<'a> {
    Here,
    Host { name: &'a str, ssh_config: Option<&'a Path> },
}

impl Machine<'_> {
    /// Returns the command that runs a program there; `line` is its command line in the syntax of a shell.
    fn shell(self, line: &str) -> Command {
        match self {
            Machine::Here => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {line}")]);
                command
            }
            Machine::Host { name, ssh_config } => {
                let mut command = Command::new(remote_shell::ssh(None));
                if let Some(config) = ssh_config {
                    command.arg("-F").arg(config);
                }
                command.args(remote_shell::OPTIONS).args(remote_shell::ALIVE_OPTIONS);
                command.args(["--", name, line]);
                command
            }
        }
    }

    /// Runs a script until it ends, until its time limit, or until `interrupted` returns true.
    pub(crate) fn run(
        self,
        script: &str,
        files: &ScriptFiles,
        limit: Duration,
        interrupted: fn() -> bool,
    ) -> Result<ScriptEnd> {
        fs::write(&files.script, script).map_err(at(&files.script))?;
        let input = File::open(&files.script).map_err(at(&files.script))?;
        run_command(self.shell("sh -s"), input, files, limit, interrupted)
    }

    /// Runs a command line with a file as its standard input.
    pub(crate) fn feed(
        self,
        line: &str,
        input: File,
        files: &ScriptFiles,
        limit: Duration,
    ) -> Result<ScriptEnd> {
        run_command(self.shell(line), input, files, limit, parallel::requested)
    }
}

/// Paths of the files of one script.
pub(crate) struct ScriptFiles {
    pub(crate) script: PathBuf,
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
    /// Longest standard output in bytes.
    longest: u64,
}

impl ScriptFiles {
    /// Returns `NAME.sh`, `NAME.out` and `NAME.err` in a directory.
    pub(crate) fn named(directory: &Path, name: &str) -> Self {
        let file = |extension: &str| directory.join(format!("{name}.{extension}"));
        Self { script: file("sh"), stdout: file("out"), stderr: file("err"), longest: LONGEST }
    }

    /// Returns the files of the job in a directory, whose standard output is its result file.
    pub(crate) fn of_job(directory: &Path) -> Self {
        let file = |name: &str| directory.join(name);
        let (script, stdout, stderr) = (file("run.sh"), file("results.jsonl"), file("stderr.txt"));
        Self { script, stdout, stderr, longest: LONGEST_RESULTS }
    }

    /// Returns the standard output; empty if there is none.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&read_found(&self.stdout, self.longest).unwrap_or_default()).into_owned()
    }

    /// Returns whether the output is longer than it may be.
    pub(crate) fn is_endless(&self) -> bool {
        self.limits().any(|(path, longest)| fs::metadata(path).is_ok_and(|file| file.len() > longest))
    }

    /// Cuts output that is too long.
    fn cut(&self) {
        for (path, longest) in self.limits() {
            let file = OpenOptions::new().write(true).open(path);
            let _ =
                file.and_then(
                    |file| if file.metadata()?.len() > longest { file.set_len(longest) } else { Ok(()) },
                );
        }
    }

    fn limits(&self) -> impl Iterator<Item = (&Path, u64)> {
        [(self.stdout.as_path(), self.longest), (self.stderr.as_path(), LONGEST)].into_iter()
    }

    /// Returns all of standard error in one line, shortened.
    pub(crate) fn message(&self) -> String {
        let text = read_found(&self.stderr, LONGEST).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().replace('\n', "; ").chars().take(LINE).collect()
    }

    /// Returns what standard error says about the failure, in one line: the last message of ombx or else the last line, and
    /// the line in which Open MPI or Hydra names the host of a process that died.
    pub(crate) fn error(&self) -> String {
        let text = read_found(&self.stderr, LONGEST).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let message = lines.iter().rev().find(|line| line.starts_with("ombx: ")).or(lines.last());
        let host = lines.iter().find(|line| line.contains(" on node ") || line.contains(" RUNNING AT "));
        let short = |line: &&str| line.trim_start_matches('=').trim().chars().take(LINE).collect::<String>();
        [message, host].into_iter().flatten().map(short).collect::<Vec<_>>().join("; ")
    }
}

/// How a script or a submitted job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScriptEnd {
    Code(i32),
    /// By a signal that this process did not send.
    Killed,
    TimedOut,
    Interrupted,
    /// It printed more than it may.
    Endless,
    /// The scheduler refused or lost the job; contains the reason.
    NotRun(String),
}

impl fmt::Display for ScriptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptEnd::Code(code) => write!(f, "exit code {code}"),
            ScriptEnd::Killed => f.write_str("killed by a signal"),
            ScriptEnd::TimedOut => f.write_str("time limit exceeded"),
            ScriptEnd::Interrupted => f.write_str("interrupted"),
            ScriptEnd::Endless => f.write_str("it printed without end and was ended"),
            ScriptEnd::NotRun(reason) => f.write_str(reason),
        }
    }
}

/// Runs a command as the leader of a process group, and ends the group at the time limit, when it prints too much, or when
/// `interrupted` returns true. Output goes to files, because an orphan could keep a pipe open.
pub(crate) fn run_command(
    mut command: Command,
    input: File,
    files: &ScriptFiles,
    limit: Duration,
    interrupted: fn() -> bool,
) -> Result<ScriptEnd> {
    let create = |path: &Path| File::create(path).map_err(at(path));
    command.stdin(input).stdout(create(&files.stdout)?).stderr(create(&files.stderr)?).process_group(0);
    end_with_this_thread(&mut command);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .map_err(|e| Error::fabric(format!("cannot start {program}: {e}. Is it installed?")))?;
    let since = Since::now();
    let group = Pid::from_child(&child);
    let reason = loop {
        match child.try_wait() {
            Ok(Some(_)) if files.is_endless() => break ScriptEnd::Endless,
            Ok(Some(status)) => return Ok(status.code().map_or(ScriptEnd::Killed, ScriptEnd::Code)),
            Ok(None) if interrupted() => break ScriptEnd::Interrupted,
            Ok(None) if files.is_endless() => break ScriptEnd::Endless,
            Ok(None) if since.elapsed() < limit => thread::sleep(POLL),
            Ok(None) | Err(_) => break ScriptEnd::TimedOut,
        }
    };
    let _ = kill_process_group(group, Signal::TERM);
    let signalled = Since::now();
    while signalled.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    files.cut();
    Ok(reason)
}

/// Runs a program on this machine without input and returns its trimmed standard output; empty if it cannot be started.
pub(crate) fn output_of(command: &mut Command) -> String {
    end_with_this_thread(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// Returns the error of an operation on `path`.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::storage(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_a_time_limit_and_its_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let files = ScriptFiles::named(directory.path(), "x");
        let run = |script: &str, limit| Machine::Here.run(script, &files, limit, parallel::ignored).unwrap();
        assert_eq!(run("echo a; echo b >&2; exit 3", Duration::from_secs(600)), ScriptEnd::Code(3));
        assert_eq!((files.text().as_str(), files.error().as_str()), ("a\n", "b"));
        assert_eq!(run("sleep 1000 & sleep 1000", Duration::from_millis(300)), ScriptEnd::TimedOut);
    }

    #[test]
    fn a_script_that_prints_without_end_is_ended() {
        let directory = tempfile::tempdir().unwrap();
        let files = ScriptFiles::named(directory.path(), "x");
        for script in ["yes", "yes >&2", "head -c 8M /dev/zero"] {
            let ended = Machine::Here.run(script, &files, Duration::from_secs(600), parallel::ignored);
            assert_eq!(ended.unwrap(), ScriptEnd::Endless, "{script}");
            let length = |path: &Path| fs::metadata(path).unwrap().len();
            assert!(length(&files.stdout) <= LONGEST && length(&files.stderr) <= LONGEST, "{script}");
        }
    }

    #[test]
    fn a_host_is_a_separate_argument_after_all_options() {
        let command = Machine::Host { name: "n1", ssh_config: Some(Path::new("/c d")) }.shell("sh -s");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[..2], ["-F", "/c d"]);
        assert_eq!(words[words.len() - 3..], ["--", "n1", "sh -s"]);
    }
}
