//! The machine on which something was measured, as documents name it.

use std::{fmt, fs};

/// Processor and load of this machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Model name of the first CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Load average of one minute, when [`Machine::now`] was called.
    pub load: String,
}

impl Machine {
    /// Reads `/proc`.
    pub fn now() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cpu: model.map_or("unknown model", |(_, name)| name.trim()).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            load: load.split_whitespace().next().unwrap_or("unknown").to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPUs ({}); load average before: {}", self.cpus, self.cpu, self.load)
    }
}
