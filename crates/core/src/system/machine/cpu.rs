//! CPUs: model, microcode, sockets, cores, threads, governor and turbo.

use std::collections::BTreeSet;

use crate::{
    fact::Fact,
    system::{environment::parse_cpus, machine::Files},
};

const DIRECTORY: &str = "/sys/devices/system/cpu";
const NO_CPUFREQ: &str = "the kernel does not control the frequency, as in most virtual machines";

/// The CPUs of a machine that are online.
pub(super) struct Cpus {
    /// `/proc/cpuinfo`.
    info: String,
    online: Vec<u32>,
    /// Socket and core of each CPU whose topology the kernel knows.
    places: Vec<(String, String)>,
}

impl Cpus {
    pub(super) fn of(files: &Files) -> Cpus {
        let online = parse_cpus(&files.read(&format!("{DIRECTORY}/online")).unwrap_or_default());
        let part = |cpu: u32, name: &str| files.read(&format!("{DIRECTORY}/cpu{cpu}/topology/{name}"));
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

    pub(super) fn model(&self) -> Fact {
        let arm = || {
            let part = self.field("CPU part")?;
            Some(format!("ARM implementer {}, part {part}", self.field("CPU implementer")?))
        };
        let model = self.field("model name").or_else(|| self.field("cpu")).or_else(arm);
        Fact::of(model, "/proc/cpuinfo has no model")
    }

    pub(super) fn microcode(&self) -> Fact {
        Fact::of(self.field("microcode"), "/proc/cpuinfo has no microcode")
    }

    pub(super) fn sockets(&self) -> Fact {
        let sockets: BTreeSet<&str> = self.places.iter().map(|(socket, _)| socket.as_str()).collect();
        self.counted(sockets.len())
    }

    pub(super) fn cores(&self) -> Fact {
        let cores: BTreeSet<_> = self.places.iter().collect();
        self.counted(cores.len())
    }

    fn counted(&self, count: usize) -> Fact {
        let complete = count > 0 && self.places.len() == self.online.len();
        Fact::of(complete.then(|| count.to_string()), "the kernel does not report the topology of every CPU")
    }

    pub(super) fn threads(&self) -> Fact {
        let count = self.online.len();
        Fact::of((count > 0).then(|| count.to_string()), "the kernel does not list its CPUs")
    }

    pub(super) fn governor(&self, files: &Files) -> Fact {
        let one = |cpu: &u32| {
            let read = |name: &str| files.read(&format!("{DIRECTORY}/cpu{cpu}/cpufreq/{name}"));
            let governor = read("scaling_governor")?;
            Some(read("scaling_driver").map_or(governor.clone(), |driver| format!("{governor} ({driver})")))
        };
        Fact::of(distinct(self.online.iter().filter_map(one)), NO_CPUFREQ)
    }

    /// Returns the highest frequency that the CPUs may use, if it is below what they can: `2.00 GHz of 3.50 GHz`.
    pub(super) fn frequency_limit(&self, files: &Files) -> Option<String> {
        let limit = |cpu: &u32| {
            let khz =
                |name: &str| files.read(&format!("{DIRECTORY}/cpu{cpu}/cpufreq/{name}"))?.parse::<f64>().ok();
            let (limit, most) = (khz("scaling_max_freq")?, khz("cpuinfo_max_freq")?);
            (limit < most).then(|| format!("{:.2} GHz of {:.2} GHz", limit / 1e6, most / 1e6))
        };
        distinct(self.online.iter().filter_map(limit))
    }
}

/// Returns whether the CPUs may exceed their base frequency.
pub(super) fn turbo(files: &Files) -> Fact {
    let flag = |path: &str, on: &str| {
        let value = files.read(&format!("{DIRECTORY}/{path}"))?;
        Some(if value == on { "on" } else { "off" })
    };
    Fact::of(flag("intel_pstate/no_turbo", "0").or_else(|| flag("cpufreq/boost", "1")), NO_CPUFREQ)
}

/// Returns whether cores run several threads at the same time.
pub(super) fn smt(files: &Files) -> Fact {
    let state = match files.read(&format!("{DIRECTORY}/smt/control")).as_deref() {
        Some("notsupported" | "notimplemented") => Some("not supported".to_owned()),
        _ => match files.read(&format!("{DIRECTORY}/smt/active")).as_deref() {
            Some("1") => Some("on".to_owned()),
            Some("0") => Some("off".to_owned()),
            _ => None,
        },
    };
    Fact::of(state, "the kernel does not report SMT")
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
