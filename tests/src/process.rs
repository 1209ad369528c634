//! Processes of a job, found by a mark in their environment in any process group.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, DirEntry},
    path::PathBuf,
};

use rustix::process::{Pid, Signal, kill_process};

/// Environment variable with the mark. Local ranks inherit it from their launcher.
pub const MARK: &str = "OMBX_TEST_JOB";

/// Running process.
pub struct Process {
    /// Process id.
    pub pid: Pid,
    /// Path of its executable.
    pub program: PathBuf,
    argv: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Process {
    /// Returns its rank, if a launcher started it as one.
    pub fn rank(&self) -> Option<u32> {
        ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().find_map(|name| self.variables.get(*name)?.parse().ok())
    }

    /// Returns whether it is an MPI rank of ombx, and not a helper of a launcher.
    pub fn is_rank(&self) -> bool {
        self.rank().is_some() && self.program == fs::canonicalize(crate::mpi::ombx()).unwrap_or_default()
    }

    /// Returns whether it is a rank of ombx over sockets.
    pub fn is_worker(&self) -> bool {
        self.argv.get(1).is_some_and(|word| word == "worker")
    }

    /// Returns whether it is the coordinator of ranks over sockets.
    pub fn is_coordinator(&self) -> bool {
        self.argv.iter().any(|word| word == "--coordinator")
    }

    /// Returns whether the name of its executable starts with one of `names`.
    pub fn is_called(&self, names: &[&str]) -> bool {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|name| program.starts_with(name))
    }

    /// Sends it a signal, if it is still running.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    fn read(entry: &DirEntry) -> Option<Process> {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let strings = |name: &str| -> Option<Vec<String>> {
            let bytes = fs::read(entry.path().join(name)).ok()?;
            Some(bytes.split(|b| *b == 0).map(|s| String::from_utf8_lossy(s).into_owned()).collect())
        };
        let pairs = strings("environ")?.into_iter();
        let variables = pairs.filter_map(|s| s.split_once('=').map(|(k, v)| (k.into(), v.into()))).collect();
        let program = fs::read_link(entry.path().join("exe")).ok()?;
        Some(Process { pid, program, argv: strings("cmdline")?, variables })
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid.as_raw_nonzero(), self.argv.join(" "))
    }
}

/// Returns every running process with a mark. Zombies have no environment and are not found.
pub fn marked(mark: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc can be read").flatten();
    let processes = entries.filter_map(|entry| Process::read(&entry));
    processes.filter(|p| p.variables.get(MARK).is_some_and(|m| m == mark)).collect()
}

/// Kills every process with a mark, including those that start meanwhile.
pub fn kill_marked(mark: &str) {
    for _ in 0..100 {
        let left = marked(mark);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|p| p.signal(Signal::KILL));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
