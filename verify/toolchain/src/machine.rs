//! The machine on which something was measured, and its compiler, as documents name them.

use std::{fs, process::Command, thread};

use crate::command::output;

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

/// Returns the version of rustc.
pub fn compiler() -> String {
    let version = output(Command::new("rustc").arg("--version"));
    version.map_or_else(|_| "rustc unknown".into(), |text| text.trim().to_owned())
}
