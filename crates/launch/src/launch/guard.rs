//! A process that ends a launcher and removes files of its ranks if the launching process has been killed.

use std::{
    ffi::OsString,
    io::Write,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::PathBuf,
    process::{ChildStdin, Command, Stdio},
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};

use crate::{
    launch::{
        orphans::descendants,
        shared_memory::{self, OfOthers, OfRanks},
    },
    this_process,
};

/// First argument of the process that ends a launcher.
pub(crate) const END: &str = "end-launcher";
/// Waits for the end of its standard input, and then runs its arguments with the lines as further arguments. A shell starts sooner than ombx.
const WAIT: &str = "while read -r line; do set -- \"$@\" \"$line\"; done; exec \"$@\"";
/// Time for a launcher to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(20);

/// Waiting guard, a child of this process: the end of all descendants ends it too.
pub(super) struct Guard(Option<ChildStdin>);

impl Guard {
    /// Starts a guard. Without a shell there is none.
    pub(super) fn start() -> Guard {
        let start = || {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", WAIT, "sh"]).arg(this_process::executable().ok()?).arg(END);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            command.spawn().ok()?.stdin
        };
        Guard(start())
    }

    /// Tells the guard its launcher, and the files of ranks that were there before.
    pub(super) fn watch(&mut self, launcher: Pid, others: &OfOthers) {
        let Some(pipe) = &mut self.0 else { return };
        let mut lines = format!("{}\n", launcher.as_raw_nonzero()).into_bytes();
        for path in &others.0 {
            lines.extend([path.as_os_str().as_bytes(), b"\n"].concat());
        }
        // Without the guard, the job goes on.
        let _ = pipe.write_all(&lines);
    }
}

/// Ends the launcher that the words name and all its processes, and removes files that they leave.
pub(crate) fn end(words: &[OsString]) {
    let launcher = words.first().and_then(|word| word.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let Some(launcher) = launcher else { return };
    let number = launcher.as_raw_nonzero().get().unsigned_abs();
    let family: Vec<Pid> = descendants(launcher).into_iter().chain([launcher]).collect();
    let mut files = OfRanks::default();
    files.add_job(number);
    let is_there = |pid: &&Pid| test_kill_process(**pid).is_ok();
    let since = Since::now();
    let _ = kill_process_group(launcher, Signal::TERM);
    while since.elapsed() < GRACE && family.iter().any(|pid| is_there(&pid)) {
        thread::sleep(POLL);
    }
    for pid in family.iter().filter(is_there) {
        let _ = kill_process(*pid, Signal::KILL);
    }
    shared_memory::remove_session_directory(number);
    files.remove();
    OfOthers(words[1..].iter().map(PathBuf::from).collect()).remove_new();
}
