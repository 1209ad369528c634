//! A test bed by its directory: names of its namespaces, its files, and the processes in it.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{ip::ip, shape::host_number};
use ombx_toolchain::{
    command::output,
    failure::{Failure, Result},
};

/// The subnet of a bed; hosts are .1, .2, .., and the head, from which the machine reaches them, is the last.
pub(crate) const SUBNET: &str = "10.77.0";
/// The head's last number.
pub(crate) const HEAD: u8 = 254;

/// A bed that is up, or could be.
pub(crate) struct Bed {
    directory: PathBuf,
    prefix: String,
}

impl Bed {
    /// The bed whose files are in `directory`. Two beds of one machine differ by it, and so do their namespaces.
    pub(crate) fn at(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(Failure::file(directory))?;
        let directory = directory.canonicalize().map_err(Failure::file(directory))?;
        let mut hasher = DefaultHasher::new();
        directory.hash(&mut hasher);
        Ok(Self { prefix: format!("ombx-{:06x}-", hasher.finish() & 0xff_ffff), directory })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The network namespace of a host, or of the switch, which is called `sw`.
    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// The network namespaces that exist, by the names of their hosts, sorted.
    pub(crate) fn namespaces(&self) -> Result<Vec<String>> {
        let list = ip("netns list")?;
        let names = list.lines().filter_map(|line| line.split(' ').next()?.strip_prefix(&self.prefix));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// How many hosts there are, also such as were killed.
    pub(crate) fn hosts(&self) -> usize {
        let is_host = |name: &&String| host_number(name).is_ok();
        self.namespaces().map_or(0, |names| names.iter().filter(is_host).count())
    }

    /// Process 1 of a host, as this machine numbers it.
    pub(crate) fn init_of(&self, host: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.file(&format!("{host}.pid"))).ok()?;
        let pid = text.trim().parse().ok()?;
        // The number may be another's by now: a host has a network namespace of its own.
        let of_netns = output(Command::new("ip").args(["netns", "identify", &format!("{pid}")])).ok()?;
        (of_netns.trim() == self.namespace(host)).then(|| Pid::from_raw(pid)).flatten()
    }

    /// Ends every process of the bed and removes its namespaces; files stay.
    pub(crate) fn remove(&self) -> Result<()> {
        for name in self.namespaces()? {
            let namespace = self.namespace(&name);
            for _ in 0..100 {
                // Of a namespace that was half made when its maker was killed, only the name is there.
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
