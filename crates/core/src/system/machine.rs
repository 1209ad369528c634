//! Facts about this machine that a reader needs to judge and to repeat a measurement: CPU, memory, kernel, virtualization, network.

mod cpu;
mod files;
mod network;
mod virtualization;

use std::{path::PathBuf, sync::OnceLock};

use self::files::Files;
use crate::fact::{Fact, Facts};

/// Returns the facts about this host. Later calls return what the first one found.
pub fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| facts_in(&Files { root: PathBuf::from("/") }))
}

fn facts_in(files: &Files) -> Facts {
    let cpus = cpu::Cpus::of(files);
    let all = [
        ("cpu", cpus.model()),
        ("microcode", cpus.microcode()),
        ("sockets", cpus.sockets()),
        ("cores", cpus.cores()),
        ("threads", cpus.threads()),
        ("smt", cpu::smt(files)),
        ("numa", numa(files)),
        ("governor", cpus.governor(files)),
        ("turbo", cpu::turbo(files)),
        ("memory", memory(files)),
        ("os", os(files)),
        ("kernel", kernel(files)),
        ("kernel_command_line", Fact::of(files.read("/proc/cmdline"), "/proc/cmdline cannot be read")),
        ("virtual_machine", virtualization::virtual_machine(files)),
        ("container", virtualization::container(files)),
        ("network", network::devices(files)),
    ];
    all.map(|(name, fact)| (name.to_owned(), fact)).into()
}

fn numa(files: &Files) -> Fact {
    let directory = "/sys/devices/system/node";
    let number = |name: &String| name.strip_prefix("node")?.parse::<u32>().ok();
    let mut nodes: Vec<u32> = files.names(directory).iter().filter_map(number).collect();
    nodes.sort_unstable();
    let cpus = |node: &u32| files.read(&format!("{directory}/node{node}/cpulist"));
    let each: Vec<String> =
        nodes.iter().map(|node| format!("{node}: {}", cpus(node).as_deref().unwrap_or("none"))).collect();
    let count = match nodes.len() {
        0 => None,
        1 => Some("1 node".to_owned()),
        many => Some(format!("{many} nodes, their CPUs {}", each.join("; "))),
    };
    Fact::of(count, "the kernel does not report NUMA nodes")
}

fn memory(files: &Files) -> Fact {
    let text = files.read("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    Fact::of(kib.map(|kib| format!("{:.1} GiB", kib / f64::from(1 << 20))), "/proc/meminfo has no total")
}

fn os(files: &Files) -> Fact {
    let text =
        files.read("/etc/os-release").or_else(|| files.read("/usr/lib/os-release")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    Fact::of(name.map(|name| name.trim_matches(['"', '\''])), "there is no /etc/os-release")
}

fn kernel(files: &Files) -> Fact {
    let release = files.read("/proc/sys/kernel/osrelease");
    Fact::of(release.map(|release| format!("Linux {release}")), "/proc/sys/kernel/osrelease cannot be read")
}

#[cfg(test)]
mod tests;
