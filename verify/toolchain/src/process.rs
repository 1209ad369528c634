//! Processes of a job, found by a mark in their environment in any process group.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, DirEntry},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// Environment variable and value that mark a job. Ranks of this host inherit it from their launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Name of the variable.
    pub variable: &'static str,
    /// Value, unique for each job.
    pub value: String,
}

/// Running process.
pub struct Process {
    /// Process id.
    pub pid: Pid,
    /// Path of the executable.
    pub program: PathBuf,
    /// Command line.
    pub argv: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Mark {
    /// Returns every running process with this mark. Zombies have no environment and are not found.
    pub fn processes(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| Process::read(&entry));
        processes.filter(|process| process.variables.get(self.variable) == Some(&self.value)).collect()
    }

    /// Kills every process with this mark, including those that start meanwhile.
    pub fn kill(&self) {
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            left.iter().for_each(|process| process.signal(Signal::KILL));
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Process {
    /// Returns the MPI rank of the process, if a launcher started it as one.
    pub fn rank(&self) -> Option<u32> {
        ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().find_map(|name| self.variables.get(*name)?.parse().ok())
    }

    /// Returns whether the process is an MPI rank of a program, and not a helper of the launcher.
    pub fn is_rank_of(&self, program: &Path) -> bool {
        self.rank().is_some() && fs::canonicalize(program).is_ok_and(|program| self.program == program)
    }

    /// Returns whether the process is a rank of ombx over sockets.
    pub fn is_worker(&self) -> bool {
        self.argv.get(1).is_some_and(|word| word == "worker")
    }

    /// Returns whether the process is the coordinator of ranks over sockets.
    pub fn is_coordinator(&self) -> bool {
        self.argv.get(1).is_some_and(|word| word == "coordinator")
    }

    /// Returns whether the name of the executable starts with one of `names`.
    pub fn is_called(&self, names: &[&str]) -> bool {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|name| program.starts_with(name))
    }

    /// Sends a signal to the process, if it is still running.
    pub fn signal(&self, signal: Signal) {
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
        let words: String = self.argv.join(" ").chars().take(200).collect();
        write!(f, "{} {words}", self.pid.as_raw_nonzero())
    }
}
