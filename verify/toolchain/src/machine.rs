//! The machine on which something was measured, as documents name it.

use std::{fs, thread};

/// Returns the number of CPUs that this process may use, the model of the first, and the load average of one minute.
pub fn now() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cpu = model.map_or("unknown model", |(_, name)| name.trim());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    format!("{cpus} CPUs ({cpu}); load average before: {load}")
}
