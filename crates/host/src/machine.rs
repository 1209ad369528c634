//! Facts about this machine that a reader needs to judge and to repeat a measurement: CPU, memory, kernel, virtualization, network.

pub(super) mod driver_information;
pub(super) mod netlink;
pub(super) mod network;

use std::{
    collections::BTreeSet,
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use ombx_record::{
    cpu_list::parse_cpus,
    fact::{Fact, Facts},
    unit::counted,
};

use crate::{control_group, limits};

pub use crate::machine::network::{ACTIVE, INTERRUPTS, LOCAL_CPUS, RATE, SPEED, STATE, megabits};

const TCP_CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

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
    let cpus = Cpus::new(files);
    let devices = network::devices(files);
    let sentences: Vec<&str> = devices.iter().map(|device| device.sentence.as_str()).collect();
    let network = (!sentences.is_empty()).then(|| sentences.join("; "));
    let all = [
        ("cpu", cpus.model()),
        ("microcode", cpus.microcode()),
        ("sockets", cpus.sockets()),
        ("cores", cpus.cores()),
        ("threads", cpus.threads()),
        ("smt", smt(files)),
        ("numa", numa(files)),
        ("governor", cpus.governor(files)),
        ("turbo", turbo(files)),
        ("cpu_quota", cpus.quota(files)),
        ("memory", memory(files)),
        ("os", os(files)),
        ("kernel", kernel(files)),
        ("kernel_command_line", Fact::new(files.read("/proc/cmdline"), "/proc/cmdline cannot be read")),
        ("virtual_machine", virtual_machine(files)),
        ("container", container(files)),
        ("network", Fact::new(network, "no network interface is up")),
        (
            "tcp_congestion",
            Fact::new(files.read(TCP_CONGESTION), "tcp_congestion_control of the kernel cannot be read"),
        ),
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
    Fact::new(count, "the kernel does not report NUMA nodes")
}

fn memory(files: &Files) -> Fact {
    let text = files.read("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let total = kib.map(|kib| {
        let all = kib.saturating_mul(1024);
        match limits::memory_limit(files).filter(|limit| *limit < all) {
            Some(limit) => format!("{}, of which control groups allow {}", gib(all), gib(limit)),
            None => gib(all),
        }
    });
    Fact::new(total, "/proc/meminfo has no total")
}

fn os(files: &Files) -> Fact {
    let text =
        files.read("/etc/os-release").or_else(|| files.read("/usr/lib/os-release")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    Fact::new(name.map(|name| name.trim_matches(['"', '\''])), "there is no /etc/os-release")
}

fn kernel(files: &Files) -> Fact {
    let release = files.read("/proc/sys/kernel/osrelease");
    Fact::new(release.map(|release| format!("Linux {release}")), "/proc/sys/kernel/osrelease cannot be read")
}

/// A file system with the `/proc` and `/sys` of a kernel.
pub(super) struct Files {
    pub(super) root: PathBuf,
}

/// Longest file that is read, in bytes; the names of PCI devices have 1.5 MB.
const LONGEST: u64 = 4 << 20;

impl Files {
    /// Returns the files of this machine.
    pub(crate) fn here() -> Files {
        Files { root: PathBuf::from("/") }
    }

    /// Returns the trimmed text of a file; `None` if it cannot be read or is empty.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let mut text = Vec::new();
        fs::File::open(self.path(path)).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        // Files of firmware end with a zero byte.
        let text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), " ");
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the last part of what a link points to.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        target.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Returns the names in a directory, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

const CPUS: &str = "/sys/devices/system/cpu";
const NO_CPUFREQ: &str = "the kernel does not control the frequency, as in most virtual machines";

/// The CPUs of a machine that are online.
struct Cpus {
    /// `/proc/cpuinfo`.
    info: String,
    online: Vec<u32>,
    /// Socket and core of each CPU whose topology the kernel knows.
    places: Vec<(String, String)>,
}

impl Cpus {
    fn new(files: &Files) -> Cpus {
        let online = parse_cpus(&files.read(&format!("{CPUS}/online")).unwrap_or_default());
        let part = |cpu: u32, name: &str| files.read(&format!("{CPUS}/cpu{cpu}/topology/{name}"));
        let place = |cpu: &u32| {
            // Cores of two dies of a socket may have the same number.
            let die = part(*cpu, "die_id").unwrap_or_default();
            Some((part(*cpu, "physical_package_id")?, format!("{die} {}", part(*cpu, "core_id")?)))
        };
        let places = online.iter().filter_map(place).collect();
        Cpus { info: files.read("/proc/cpuinfo").unwrap_or_default(), online, places }
    }

    /// Returns the different values of a field of `/proc/cpuinfo`.
    fn field(&self, name: &str) -> Option<String> {
        let value = |line: &str| {
            let (field, value) = line.split_once(':')?;
            (field.trim() == name).then(|| value.trim().to_owned())
        };
        distinct(self.info.lines().filter_map(value).filter(|value| !value.is_empty()))
    }

    fn model(&self) -> Fact {
        let arm = || {
            let part = self.field("CPU part")?;
            Some(format!("ARM implementer {}, part {part}", self.field("CPU implementer")?))
        };
        let model = self.field("model name").or_else(|| self.field("cpu")).or_else(arm);
        Fact::new(model, "/proc/cpuinfo has no model")
    }

    fn microcode(&self) -> Fact {
        Fact::new(self.field("microcode"), "/proc/cpuinfo has no microcode")
    }

    fn sockets(&self) -> Fact {
        let sockets: BTreeSet<&str> = self.places.iter().map(|(socket, _)| socket.as_str()).collect();
        self.counted(sockets.len())
    }

    fn cores(&self) -> Fact {
        let cores: BTreeSet<_> = self.places.iter().collect();
        self.counted(cores.len())
    }

    fn counted(&self, count: usize) -> Fact {
        let complete = count > 0 && self.places.len() == self.online.len();
        Fact::new(complete.then(|| count.to_string()), "the kernel does not report the topology of every CPU")
    }

    fn threads(&self) -> Fact {
        let count = self.online.len();
        Fact::new((count > 0).then(|| count.to_string()), "the kernel does not list its CPUs")
    }

    fn governor(&self, files: &Files) -> Fact {
        let one = |cpu: &u32| {
            let read = |name: &str| files.read(&format!("{CPUS}/cpu{cpu}/cpufreq/{name}"));
            let governor = read("scaling_governor")?;
            Some(read("scaling_driver").map_or(governor.clone(), |driver| format!("{governor} ({driver})")))
        };
        Fact::new(distinct(self.online.iter().filter_map(one)), NO_CPUFREQ)
    }

    /// Returns the quota of CPU time of this process, if it is below the number of CPUs: `1.5 of 64 CPUs`.
    fn quota(&self, files: &Files) -> Fact {
        if !files.exists(control_group::MEMBERSHIP) {
            return Fact::Unknown { reason: format!("{} cannot be read", control_group::MEMBERSHIP) };
        }
        let all = self.online.len();
        let quota = control_group::cpu_quota_in(files);
        let quota = quota.filter(|quota| quota.is_below(u32::try_from(all).unwrap_or(u32::MAX)));
        let text = quota.map(|quota| format!("{} of {}", quota.number(), counted(all, "CPU")));
        Fact::Known(text.unwrap_or_else(|| NONE.into()))
    }

    /// Returns the highest frequency that the CPUs may use, if it is below what they can: `2.00 GHz of 3.50 GHz`.
    fn frequency_limit(&self, files: &Files) -> Option<String> {
        distinct(self.online.iter().filter_map(|cpu| frequency_limit(*cpu, files)))
    }
}

/// Returns the highest frequency that a CPU may use, if it is below what it can.
fn frequency_limit(cpu: u32, files: &Files) -> Option<String> {
    let khz = |name: &str| files.read(&format!("{CPUS}/cpu{cpu}/cpufreq/{name}"))?.parse::<f64>().ok();
    let (limit, most) = (khz("scaling_max_freq")?, khz("cpuinfo_max_freq")?);
    (limit < most).then(|| format!("{:.2} GHz of {:.2} GHz", limit / 1e6, most / 1e6))
}

/// Returns whether the CPUs may exceed their base frequency.
fn turbo(files: &Files) -> Fact {
    let flag = |path: &str, on: &str| {
        let value = files.read(&format!("{CPUS}/{path}"))?;
        Some(if value == on { "on" } else { "off" })
    };
    Fact::new(flag("intel_pstate/no_turbo", "0").or_else(|| flag("cpufreq/boost", "1")), NO_CPUFREQ)
}

/// Returns whether cores run several threads at the same time.
fn smt(files: &Files) -> Fact {
    let state = match files.read(&format!("{CPUS}/smt/control")).as_deref() {
        Some("notsupported" | "notimplemented") => Some("not supported".to_owned()),
        _ => match files.read(&format!("{CPUS}/smt/active")).as_deref() {
            Some("1") => Some("on".to_owned()),
            Some("0") => Some("off".to_owned()),
            _ => None,
        },
    };
    Fact::new(state, "the kernel does not report SMT")
}

/// Returns the values without repetitions, in order, joined by commas; `None` if there is none.
fn distinct(values: impl IntoIterator<Item = String>) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    (!all.is_empty()).then(|| all.join(", "))
}

const NONE: &str = "none";
/// Makers and products that firmware names in virtual machines.
const VIRTUAL: [&str; 9] = [
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "Xen",
    "Bochs",
    "OpenStack",
    "Amazon EC2",
    "Google Compute Engine",
];
/// Parts of the names of control groups, and the engines that choose them.
const CONTROL_GROUPS: [(&str, &str); 5] = [
    ("docker", "Docker"),
    ("kubepods", "Kubernetes"),
    ("libpod", "Podman"),
    ("lxc", "LXC"),
    ("garden", "Garden"),
];

fn virtual_machine(files: &Files) -> Fact {
    let firmware = |file: &str| files.read(&format!("/sys/class/dmi/id/{file}"));
    let product: Vec<String> =
        [firmware("sys_vendor"), firmware("product_name")].into_iter().flatten().collect();
    let product = product.join(" ");
    let info = files.read("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags"));
    let has_flag = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let named = files.read("/sys/hypervisor/type").or_else(|| {
        (has_flag == Some(true) || VIRTUAL.iter().any(|name| product.contains(name))).then(|| product.clone())
    });
    match (named, has_flag) {
        (Some(name), _) if name.is_empty() => Fact::Known("yes, of a hypervisor without a name".into()),
        (Some(name), _) => Fact::Known(format!("yes: {name}")),
        // Processors of other architectures do not say it.
        (None, Some(false)) => Fact::Known(NONE.into()),
        (None, _) if !product.is_empty() => Fact::Known(NONE.into()),
        (None, _) => Fact::Unknown { reason: "neither the CPU nor the firmware says".into() },
    }
}

fn container(files: &Files) -> Fact {
    let variable = |name: &str| env::var_os(name).is_some();
    let groups = files.read("/proc/1/cgroup").unwrap_or_default();
    let by_group = CONTROL_GROUPS.iter().find(|(part, _)| groups.contains(part)).map(|(_, engine)| *engine);
    let engine = match () {
        () if variable("APPTAINER_CONTAINER") => Some("Apptainer"),
        () if variable("SINGULARITY_CONTAINER") => Some("Singularity"),
        () if files.exists("/run/.containerenv") => Some("Podman"),
        () if files.exists("/.dockerenv") => Some("Docker"),
        () => by_group,
    };
    // systemd writes the name of the engine there.
    let named = || files.read("/run/systemd/container");
    Fact::Known(engine.map(str::to_owned).or_else(named).unwrap_or_else(|| NONE.into()))
}

/// Bytes of a last-level cache whose size sysfs does not have.
pub const ASSUMED_CACHE: u64 = 64 << 20;

/// Returns the bytes of the largest last-level cache of a CPU of this host; `None` if sysfs has none.
pub fn last_level_cache() -> Option<u64> {
    static FOUND: OnceLock<Option<u64>> = OnceLock::new();
    *FOUND.get_or_init(|| last_level_in(Path::new(CPUS)))
}

/// Returns the size of the largest cache of the highest level below a directory of CPUs.
fn last_level_in(cpus: &Path) -> Option<u64> {
    let caches = directories(cpus, "cpu").flat_map(|cpu| directories(&cpu.join("cache"), "index"));
    let found = caches.filter_map(|cache| {
        let read = |name: &str| fs::read_to_string(cache.join(name)).ok();
        let level: u32 = read("level")?.trim().parse().ok()?;
        (read("type")?.trim() != "Instruction").then_some((level, cache_bytes(read("size")?.trim())?))
    });
    found.max().map(|(_, bytes)| bytes)
}

/// Returns the directories in another one whose names are a prefix and a number.
fn directories(path: &Path, prefix: &'static str) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(move |path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(prefix)).is_some_and(|n| n.parse::<u32>().is_ok())
    })
}

/// Returns the bytes of a size as the kernel writes it, such as `32768K`; `None` for 0 and for other texts.
fn cache_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let size = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (size > 0).then_some(size)
}

#[cfg(test)]
mod cache_tests {
    use crate::machine::*;

    #[test]
    fn the_largest_cache_of_the_highest_level_counts() {
        let directory = ombx_testkit::Directory::new("cache");
        let root = directory.path();
        assert_eq!(last_level_in(root), None);
        let caches = [
            ("cpu0", 0, "1", "Data", "48K"),
            ("cpu0", 1, "1", "Instruction", "32K"),
            ("cpu0", 3, "3", "Unified", "16M"),
            ("cpu1", 2, "2", "Unified", "131072K"),
            ("cpu1", 3, "3", "Unified", "32768K"),
            ("cpu2", 3, "4", "Unified", "0K"),
            ("cpufreq", 3, "9", "Unified", "1G"),
        ];
        for (cpu, index, level, kind, size) in caches {
            let cache = root.join(cpu).join(format!("cache/index{index}"));
            fs::create_dir_all(&cache).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(last_level_in(root), Some(32 << 20));
    }

    #[test]
    fn sizes_are_those_of_the_kernel() {
        for (text, found) in [
            ("512", Some(512)),
            ("32K", Some(32 << 10)),
            ("2M", Some(2 << 20)),
            ("", None),
            ("K", None),
            ("-1K", None),
        ] {
            assert_eq!(cache_bytes(text), found, "{text}");
        }
    }
}

#[cfg(test)]
mod tests;
