//! Processes of a job, found by a mark in their environment in any process group.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, DirEntry},
    path::PathBuf,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// Environment variable with the mark. Ranks of this host inherit it from their launcher.
pub(crate) const MARK: &str = "OMBX_FAULT_JOB";

/// Running process.
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Process {
    /// Returns its rank, if a launcher started it as one.
    pub(crate) fn rank(&self) -> Option<u32> {
        ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().find_map(|name| self.variables.get(*name)?.parse().ok())
    }

    /// Returns whether the name of its executable starts with one of `names`.
    pub(crate) fn is_called(&self, names: &[&str]) -> bool {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|name| program.starts_with(name))
    }

    /// Sends a signal, if it is still running.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    fn read(entry: &DirEntry) -> Option<Self> {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let strings = |name: &str| -> Option<Vec<String>> {
            let bytes = fs::read(entry.path().join(name)).ok()?;
            Some(bytes.split(|b| *b == 0).map(|s| String::from_utf8_lossy(s).into_owned()).collect())
        };
        let pairs = strings("environ")?.into_iter();
        let variables = pairs.filter_map(|s| s.split_once('=').map(|(k, v)| (k.into(), v.into()))).collect();
        let program = fs::read_link(entry.path().join("exe")).ok()?;
        Some(Self { pid, program, argv: strings("cmdline")?, variables })
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: String = self.argv.join(" ").chars().take(100).collect();
        write!(f, "{} {words}", self.pid.as_raw_nonzero())
    }
}

/// Returns every running process with a mark. Zombies have no environment and are not found.
pub(crate) fn processes(mark: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| Process::read(&entry));
    processes.filter(|p| p.variables.get(MARK).is_some_and(|m| m == mark)).collect()
}

/// Kills every process with a mark, including those that start meanwhile.
pub(crate) fn kill(mark: &str) {
    for _ in 0..100 {
        let left = processes(mark);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|p| p.signal(Signal::KILL));
        thread::sleep(Duration::from_millis(5));
    }
}
