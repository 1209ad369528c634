//! Counters of network devices, of the kernel's protocols and of CPUs that tell errors and congestion. Sources: the kernel's documents
//! `ABI/testing/sysfs-class-infiniband`, `sysfs-class-net-statistics` and `sysfs-devices-system-cpu`, NVIDIA's page on counters of mlx5
//! adapters, and RFC 4022.
//!
//! Counters of one driver only, such as those of pauses by priority (PFC), are not read.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    clock::Since,
    machine::{
        Files, netlink,
        network::{ADAPTERS, INTERFACES, interfaces},
    },
};

/// How much one counter of a host grew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    /// Host.
    pub host: String,
    /// Device or protocol: `eth0`, `mlx5_0 port 1`, `Tcp` or `cpu`.
    pub device: String,
    /// Name of the counter in the kernel.
    pub counter: String,
    /// Increase.
    pub by: u64,
}

impl Growth {
    /// Returns whether the counter stands still while everything is healthy.
    pub fn is_error(&self) -> bool {
        let all = [&PORT[..], &HARDWARE, &INTERFACE, &STATISTICS, &PROTOCOLS.map(|(_, known)| known), &CPU];
        all.into_iter().flatten().any(|known| known.name == self.counter && known.kind == Kind::Error)
    }

    /// Returns whether it counts losses of time because a CPU was too hot.
    pub fn is_throttling(&self) -> bool {
        self.device == CPUS
    }

    /// Returns the sums of equal counters, in order.
    pub fn summed(all: impl IntoIterator<Item = Growth>) -> Vec<Growth> {
        let mut sums = BTreeMap::new();
        for Growth { host, device, counter, by } in all {
            let sum: &mut u64 = sums.entry((host, device, counter)).or_default();
            *sum = sum.saturating_add(by);
        }
        sums.into_iter().map(|((host, device, counter), by)| Growth { host, device, counter, by }).collect()
    }
}

impl std::fmt::Display for Growth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} +{}", self.device, self.counter, self.by)
    }
}

/// What the growth of a counter means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Something is broken or too hot.
    Error,
    /// It also grows in healthy operation, under load or when a connection begins.
    Load,
}

/// A counter that is read.
#[derive(Debug, Clone, Copy)]
struct Known {
    name: &'static str,
    kind: Kind,
}

const fn error(name: &'static str) -> Known {
    Known { name, kind: Kind::Error }
}

const fn load(name: &'static str) -> Known {
    Known { name, kind: Kind::Load }
}

/// Counters of an InfiniBand port, in `ports/N/counters`.
const PORT: [Known; 9] = [
    error("symbol_error"),
    error("link_error_recovery"),
    error("link_downed"),
    error("port_rcv_errors"),
    error("port_rcv_remote_physical_errors"),
    error("local_link_integrity_errors"),
    error("excessive_buffer_overrun_errors"),
    load("port_xmit_discards"),
    load("port_xmit_wait"),
];
/// Counters of the same port in `ports/N/hw_counters`. RoCE marks packets (ECN) and tells senders of congestion (CNP).
const HARDWARE: [Known; 7] = [
    load("local_ack_timeout_err"),
    load("packet_seq_err"),
    error("rx_icrc_encapsulated"),
    load("out_of_buffer"),
    load("np_ecn_marked_roce_packets"),
    load("np_cnp_sent"),
    load("rp_cnp_handled"),
];
/// Counters of an interface.
const INTERFACE: [Known; 1] = [error("carrier_down_count")];
/// Counters of an interface, in `statistics`. Frames of protocols that nobody wants, and frames for which the host has no buffer, are
/// dropped too.
const STATISTICS: [Known; 12] = [
    error("rx_errors"),
    error("rx_crc_errors"),
    error("rx_frame_errors"),
    error("rx_length_errors"),
    load("rx_fifo_errors"),
    load("rx_missed_errors"),
    error("tx_errors"),
    error("tx_carrier_errors"),
    error("tx_fifo_errors"),
    error("collisions"),
    load("rx_dropped"),
    load("tx_dropped"),
];
/// Pause frames of an interface, by the netlink of ethtool: sent, and received.
const PAUSE_FRAMES: [&str; 2] = ["tx_pause_frames", "rx_pause_frames"];
/// Counters of protocols in `/proc/net/snmp` and `/proc/net/netstat`, with the start of their lines. Segments are in error if their
/// checksum is wrong; TCP sends some again when it looks for the rate of a link.
const PROTOCOLS: [(&str, Known); 5] = [
    ("Tcp", error("InErrs")),
    ("Tcp", load("RetransSegs")),
    ("Udp", error("InCsumErrors")),
    ("Udp", load("RcvbufErrors")),
    ("TcpExt", load("TCPTimeouts")),
];
/// Counters of a CPU, in `thermal_throttle`.
const CPU: [Known; 2] = [error("core_throttle_count"), error("package_throttle_count")];

const CPU_DIRECTORY: &str = "/sys/devices/system/cpu";
const PROTOCOL_FILES: [&str; 2] = ["/proc/net/snmp", "/proc/net/netstat"];
/// Device of the counters of all CPUs.
const CPUS: &str = "cpu";
/// Least time between two readings of the counters of CPUs, which takes some microseconds for each.
const CPUS_EVERY: Duration = Duration::from_secs(1);

/// Counters by device and name.
type Reading = BTreeMap<(String, &'static str), u64>;

/// Counters of this host, and what they were when they were read last.
pub struct DeviceCounters {
    host: String,
    files: Files,
    /// Files that exist: device, counter and path.
    paths: Vec<(String, &'static str, String)>,
    /// Interfaces that count pause frames.
    pausing: Vec<String>,
    last: RefCell<Reading>,
    /// Least time between two readings of the counters of CPUs.
    cpus_every: Duration,
    /// When the counters of CPUs were read last.
    cpus_read: Cell<Since>,
}

impl DeviceCounters {
    /// Reads the counters of this host, as `host`, for the first time.
    pub fn new(host: &str) -> DeviceCounters {
        DeviceCounters::among(host, Files::here(), CPUS_EVERY)
    }

    fn among(host: &str, files: Files, cpus_every: Duration) -> DeviceCounters {
        let mut paths = Vec::new();
        let mut add = |device: &str, directory: String, all: &[Known]| {
            let path = |known: &Known| (device.to_owned(), known.name, format!("{directory}/{}", known.name));
            paths.extend(all.iter().map(path).filter(|(_, _, path)| files.exists(path)));
        };
        for name in files.names(ADAPTERS) {
            for port in files.names(&format!("{ADAPTERS}/{name}/ports")) {
                let (device, directory) =
                    (format!("{name} port {port}"), format!("{ADAPTERS}/{name}/ports/{port}"));
                add(&device, format!("{directory}/counters"), &PORT);
                add(&device, format!("{directory}/hw_counters"), &HARDWARE);
            }
        }
        for name in interfaces(&files) {
            add(&name, format!("{INTERFACES}/{name}"), &INTERFACE);
            add(&name, format!("{INTERFACES}/{name}/statistics"), &STATISTICS);
        }
        let is_cpu =
            |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
        for name in files.names(CPU_DIRECTORY).into_iter().filter(is_cpu) {
            add(&name, format!("{CPU_DIRECTORY}/{name}/thermal_throttle"), &CPU);
        }
        let mut pausing = interfaces(&files);
        pausing.retain(|name| netlink::pause_frames(&files, name).is_some());
        let last = RefCell::new(reading(&files, &paths, &pausing));
        DeviceCounters {
            host: host.to_owned(),
            files,
            paths,
            pausing,
            last,
            cpus_every,
            cpus_read: Cell::new(Since::now()),
        }
    }

    /// Returns the counters that grew since the last call, or since the first reading. A counter that was set back did not grow.
    ///
    /// Counters of CPUs are read at most once a second: a host may have hundreds. Threads of a core, and cores of a package, count
    /// the same events, so that the CPU with the most counts.
    pub fn grown(&self) -> Vec<Growth> {
        let reads_cpus = self.cpus_read.get().elapsed() >= self.cpus_every;
        let is_read = |(device, counter, _): &&(String, &'static str, String)| {
            reads_cpus || !is_of_cpu(counter) || !self.last.borrow().contains_key(&(device.clone(), *counter))
        };
        let mut now = reading(&self.files, self.paths.iter().filter(is_read), &self.pausing);
        if reads_cpus {
            self.cpus_read.set(Since::now());
        }
        let mut grown: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
        let mut before = self.last.borrow_mut();
        for ((device, counter), value) in &now {
            let by = before.get(&(device.clone(), *counter)).and_then(|before| value.checked_sub(*before));
            let device = if is_of_cpu(counter) { CPUS } else { device };
            let most = grown.entry((device.to_owned(), *counter)).or_default();
            *most = by.unwrap_or(0).max(*most);
        }
        before.append(&mut now);
        let grown = grown.into_iter().filter(|(_, by)| *by > 0);
        grown
            .map(|((device, counter), by)| Growth {
                host: self.host.clone(),
                device,
                counter: counter.to_owned(),
                by,
            })
            .collect()
    }
}

fn is_of_cpu(counter: &str) -> bool {
    CPU.iter().any(|known| known.name == counter)
}

/// Reads the counters in these files, the pause frames of these interfaces, and the counters of protocols.
fn reading<'p>(
    files: &Files,
    paths: impl IntoIterator<Item = &'p (String, &'static str, String)>,
    pausing: &[String],
) -> Reading {
    let mut all = Reading::new();
    for name in pausing {
        let counts = netlink::pause_frames(files, name).into_iter().flatten();
        all.extend(
            PAUSE_FRAMES.into_iter().zip(counts).map(|(counter, count)| ((name.clone(), counter), count)),
        );
    }
    for (device, counter, path) in paths {
        if let Some(value) = files.read(path).and_then(|text| text.parse::<u64>().ok()) {
            all.insert((device.clone(), *counter), value);
        }
    }
    for text in PROTOCOL_FILES.iter().filter_map(|path| files.read(path)) {
        let of = |(protocol, known): &(&str, Known)| {
            Some(((String::from(*protocol), known.name), of_protocol(&text, protocol, known.name)?))
        };
        all.extend(PROTOCOLS.iter().filter_map(of));
    }
    all
}

/// Returns a counter from two lines that begin with the name of the protocol: the names of the counters, then their values.
fn of_protocol(text: &str, protocol: &str, counter: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (names, values) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(values).find(|(name, _)| *name == counter)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testkit::Directory;

    fn write(files: &Files, path: &str, text: &str) {
        let path = files.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn what_grew_is_named_with_its_number() {
        let directory = Directory::new("device-counters");
        let files = || Files { root: directory.path().to_owned() };
        let port = "/sys/class/infiniband/mlx5_0/ports/1";
        let set = |path: &str, text: &str| write(&files(), path, text);
        set(&format!("{port}/counters/symbol_error"), "7\n");
        set(&format!("{port}/counters/port_xmit_wait"), "100\n");
        set(&format!("{port}/hw_counters/np_cnp_sent"), "0\n");
        set("/sys/class/net/eth0/device/vendor", "0x15b3\n");
        set("/sys/class/net/eth0/statistics/rx_crc_errors", "4\n");
        set("/sys/class/net/eth0/statistics/collisions", "9\n");
        for cpu in ["cpu0", "cpu1", "cpufreq"] {
            set(&format!("/sys/devices/system/cpu/{cpu}/thermal_throttle/core_throttle_count"), "1\n");
        }
        set("/proc/net/snmp", "Ip: A B\nIp: 1 2\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 5 0\n");
        set("/proc/net/netstat", "TcpExt: TCPTimeouts\nTcpExt: 3\n");
        let counters = DeviceCounters::among("n1", files(), Duration::ZERO);
        assert_eq!(counters.grown(), []);
        set(&format!("{port}/counters/symbol_error"), "19\n");
        set(&format!("{port}/counters/port_xmit_wait"), "101\n");
        set("/sys/class/net/eth0/statistics/rx_crc_errors", "5\n");
        set("/sys/class/net/eth0/statistics/collisions", "0\n");
        set("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "3\n");
        set("/proc/net/snmp", "Tcp: RtoMin RetransSegs InErrs\nTcp: 200 8 2\n");
        let grown = counters.grown();
        let texts: Vec<String> = grown.iter().map(Growth::to_string).collect();
        let expected = [
            "Tcp InErrs +2",
            "Tcp RetransSegs +3",
            "cpu core_throttle_count +2",
            "eth0 rx_crc_errors +1",
            "mlx5_0 port 1 port_xmit_wait +1",
            "mlx5_0 port 1 symbol_error +12",
        ];
        assert_eq!(texts, expected);
        let errors: Vec<bool> = grown.iter().map(Growth::is_error).collect();
        assert_eq!(errors, [true, false, true, true, false, true]);
        assert!(grown.iter().all(|one| one.host == "n1"));
        assert_eq!(counters.grown(), []);
        let twice = Growth::summed(grown.iter().chain(&grown).cloned());
        assert_eq!((twice.len(), twice[0].by), (6, 4));
    }

    #[test]
    fn this_host_has_counters_and_lacking_ones_are_left_out() {
        let directory = Directory::new("no-device-counters");
        let files = Files { root: directory.path().to_owned() };
        assert_eq!(DeviceCounters::among("n1", files, Duration::ZERO).grown(), []);
        let here = DeviceCounters::new("n1");
        assert!(here.last.borrow().keys().any(|(device, _)| device == "Tcp"));
    }
}
