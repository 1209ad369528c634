//! Child processes with a time limit.

use std::{
    fmt,
    fs::File,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use ombx_core::{
    clock::Since,
    error::{Error, Result},
};
use rustix::process::{Pid, Signal, kill_process_group};

use super::files::{ScriptFiles, at};

const POLL: Duration = Duration::from_millis(20);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// How a script or a submitted job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    /// By a signal that this process did not send.
    Killed,
    TimedOut,
    Interrupted,
    /// The scheduler refused or lost the job; contains the reason.
    NotRun(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "exit code {code}"),
            Ended::Killed => f.write_str("killed by a signal"),
            Ended::TimedOut => f.write_str("time limit exceeded"),
            Ended::Interrupted => f.write_str("interrupted"),
            Ended::NotRun(reason) => f.write_str(reason),
        }
    }
}

/// Starts a command as the leader of a process group. Its output goes to files, because an orphan could keep a pipe open.
pub(super) fn start(mut command: Command, input: File, files: &ScriptFiles) -> Result<Child> {
    let create = |path: &Path| File::create(path).map_err(at(path));
    command.stdin(input).stdout(create(&files.stdout)?).stderr(create(&files.stderr)?).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|e| Error::fabric(format!("cannot start {program}: {e}. Is it installed?")))
}

/// Waits for the leader of a process group. Ends the group at the time limit or when `interrupted` returns true.
pub(super) fn wait(mut child: Child, limit: Duration, interrupted: impl Fn() -> bool) -> Ended {
    let since = Since::now();
    let group = Pid::from_child(&child);
    let reason = loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().map_or(Ended::Killed, Ended::Code),
            Ok(None) if interrupted() => break Ended::Interrupted,
            Ok(None) if since.elapsed() < limit => thread::sleep(POLL),
            Ok(None) | Err(_) => break Ended::TimedOut,
        }
    };
    let _ = kill_process_group(group, Signal::TERM);
    let signalled = Since::now();
    while signalled.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    reason
}

/// Runs a program on this machine without input and returns its trimmed standard output; empty if it cannot be started.
pub(crate) fn output_of(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
