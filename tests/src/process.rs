//! The processes of a job, found by a mark in their environment, wherever in the tree and the groups they are.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, DirEntry},
    path::PathBuf,
};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks them; local ranks inherit the environment of whoever started them.
pub const MARK: &str = "OMBX_TEST_JOB";

/// A live process.
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its program.
    pub program: PathBuf,
    argv: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Process {
    /// Its rank, if a launcher has made it one.
    pub fn rank(&self) -> Option<u32> {
        ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().find_map(|name| self.variables.get(*name)?.parse().ok())
    }

    /// Whether it is a rank of ombx, and not a launcher's helper.
    pub fn is_rank(&self) -> bool {
        self.rank().is_some() && self.program == fs::canonicalize(crate::mpi::ombx()).unwrap_or_default()
    }

    /// Whether it is a rank of ombx over sockets.
    pub fn is_worker(&self) -> bool {
        self.argv.get(1).is_some_and(|word| word == "worker")
    }

    /// Whether it holds ranks over sockets together.
    pub fn is_coordinator(&self) -> bool {
        self.argv.iter().any(|word| word == "--coordinator")
    }

    /// Whether its program's name begins with one of `names`.
    pub fn is_called(&self, names: &[&str]) -> bool {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|name| program.starts_with(name))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may have ended by now.
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

/// Every live process with a mark, this one left out. A process that has ended and waits for its parent has none.
pub fn marked(mark: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("/proc can be read").flatten();
    let processes = entries.filter_map(|entry| Process::read(&entry));
    processes.filter(|p| p.variables.get(MARK).is_some_and(|m| m == mark)).collect()
}

/// Ends every process with a mark, those that are started meanwhile too.
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
