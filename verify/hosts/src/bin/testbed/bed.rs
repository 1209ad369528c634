//! Test bed: its directory, files, namespaces and processes.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::shape::host_number;
use ombx_toolchain::{Failure, Result, output};

/// Subnet of a bed. Hosts have the addresses .1, .2, ..; the machine reaches them through the head.
pub(crate) const SUBNET: &str = "10.77.0";
/// Last number of the address of the head.
pub(crate) const HEAD: u8 = 254;

/// Runs `ip` of iproute2 with arguments separated by blanks and returns what it prints.
pub(crate) fn ip(arguments: &str) -> Result<String> {
    output(Command::new("ip").args(arguments.split(' ')))
}

/// Test bed, which may run or not.
pub(crate) struct Bed {
    pub(crate) directory: PathBuf,
    prefix: String,
}

impl Bed {
    /// Returns the bed with its files in `directory`. The names of its namespaces contain a hash of the directory.
    pub(crate) fn at(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(Failure::file(directory))?;
        let directory = directory.canonicalize().map_err(Failure::file(directory))?;
        let mut hasher = DefaultHasher::new();
        directory.hash(&mut hasher);
        Ok(Self { prefix: format!("ombx-{:06x}-", hasher.finish() & 0xff_ffff), directory })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the network namespace of a host, or of the switch with the name `sw`.
    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Returns the hosts with a network namespace, sorted.
    pub(crate) fn namespaces(&self) -> Result<Vec<String>> {
        let list = ip("netns list")?;
        let names = list.lines().filter_map(|line| line.split(' ').next()?.strip_prefix(&self.prefix));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the number of hosts, including killed ones.
    pub(crate) fn hosts(&self) -> usize {
        let is_host = |name: &&String| host_number(name).is_ok();
        self.namespaces().map_or(0, |names| names.iter().filter(is_host).count())
    }

    /// Returns process 1 of a host, by its number on this machine.
    pub(crate) fn init_of(&self, host: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.file(&format!("{host}.pid"))).ok()?;
        let pid = text.trim().parse().ok()?;
        // Another process may have the number by now: the network namespace proves that it is the host.
        let of_netns = ip(&format!("netns identify {pid}")).ok()?;
        (of_netns.trim() == self.namespace(host)).then(|| Pid::from_raw(pid)).flatten()
    }

    /// Kills every process of the bed and removes its namespaces. Files stay.
    pub(crate) fn remove(&self) -> Result<()> {
        for name in self.namespaces()? {
            let namespace = self.namespace(&name);
            for _ in 0..100 {
                // A namespace may exist only by name if its creation was interrupted.
                let pids = ip(&format!("netns pids {namespace}")).unwrap_or_default();
                let pids: Vec<Pid> =
                    pids.lines().filter_map(|pid| Pid::from_raw(pid.trim().parse().ok()?)).collect();
                if pids.is_empty() {
                    break;
                }
                for pid in pids {
                    let _ = kill_process(pid, Signal::KILL);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            ip(&format!("netns del {namespace}"))?;
        }
        for name in ["switch.ready", "switch.pid", "switch.stats", "cuts"] {
            let _ = fs::remove_file(self.file(name));
        }
        Ok(())
    }
}
