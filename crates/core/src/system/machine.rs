//! Facts about this machine that a reader needs to judge and to repeat a measurement: CPU, memory, kernel, virtualization, network.

mod cpu;
pub(super) mod netlink;
pub(super) mod network;
mod virtualization;

use std::{fs, io::Read as _, path::PathBuf, sync::OnceLock};

use crate::fact::{Fact, Facts};

pub use self::network::{INTERRUPTS, LOCAL_CPUS};

/// Returns the facts about this host. Later calls return what the first one found.
pub fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| facts_in(&Files::here()))
}

/// Returns the device of a fact about a device, such as `eth0 speed`; `None` of a fact about the host.
pub fn device_of(fact: &str) -> Option<&str> {
    fact.split_once(' ').map(|(device, _)| device)
}

fn facts_in(files: &Files) -> Facts {
    let cpus = cpu::Cpus::of(files);
    let devices = network::devices(files);
    let sentences: Vec<&str> = devices.iter().map(|device| device.sentence.as_str()).collect();
    let network = (!sentences.is_empty()).then(|| sentences.join("; "));
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
        ("network", Fact::of(network, "no network interface is up")),
    ];
    let all = all.into_iter().map(|(name, fact)| (name.to_owned(), fact));
    let limit =
        cpus.frequency_limit(files).map(|limit| ("cpu frequency limit".to_owned(), Fact::Known(limit)));
    let of_devices = devices.into_iter().flat_map(|network::Device { name, properties, .. }| {
        let fact = move |(property, value)| (format!("{name} {property}"), Fact::Known(value));
        properties.into_iter().map(fact)
    });
    all.chain(limit).chain(of_devices).collect()
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

/// A file system with the `/proc` and `/sys` of a kernel.
pub(super) struct Files {
    pub(super) root: PathBuf,
}

/// Longest file that is read, in bytes; the names of PCI devices have 1.5 MB.
const LONGEST: u64 = 4 << 20;

impl Files {
    /// Returns the files of this machine.
    pub(super) fn here() -> Files {
        Files { root: PathBuf::from("/") }
    }

    /// Returns the trimmed text of a file; `None` if it cannot be read or is empty.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let mut text = Vec::new();
        fs::File::open(self.path(path)).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        // Files of firmware end with a zero byte.
        let text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), " ");
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the last part of what a link points to.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests;
