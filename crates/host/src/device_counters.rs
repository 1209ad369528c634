//! Counters of network devices, of the kernel's protocols and of CPUs that tell errors and congestion.
//!
//! Sources: the kernel's documents `ABI/stable/sysfs-class-infiniband`, `ABI/testing/sysfs-class-net-statistics`,
//! `ABI/testing/sysfs-devices-system-cpu` and `networking/statistics`, and RFC 4022. The counters of RDMA drivers are in the files
//! `mlx5/counters.c`, `efa/efa_verbs.c`, `bnxt_re/hw_counters.c` and `irdma/verbs.c` below the kernel's `drivers/infiniband/hw`; NVIDIA and
//! Amazon explain theirs in their pages on mlx5 and EFA. Those of protocols are in the kernel's `net/ipv4/proc.c` and `net/ipv6/proc.c`.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use ombx_record::{cpu_list::parse_cpus, result::Growth};

use crate::{
    machine::{
        Files,
        driver_information::PriorityPauses,
        netlink,
        network::{ADAPTERS, INTERFACES, interfaces},
    },
    since::Since,
};

/// What the growth of a counter means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CounterKind {
    /// Something is broken or too hot.
    Error,
    /// It also grows in healthy operation, under load or when a connection begins.
    Load,
}

impl CounterKind {
    const ALL: [CounterKind; 2] = [CounterKind::Error, CounterKind::Load];
}

/// A counter that is read.
#[derive(Debug, Clone, Copy)]
struct Known {
    name: &'static str,
    kind: CounterKind,
}

const fn error(name: &'static str) -> Known {
    Known { name, kind: CounterKind::Error }
}

const fn load(name: &'static str) -> Known {
    Known { name, kind: CounterKind::Load }
}

/// Counters of an InfiniBand port, in `ports/N/counters`. Management packets (virtual lane 15) have no flow control: a port drops them if it
/// has no buffer. Errors of the relay of a switch also come from healthy traffic, as `ibqueryerrors` says of them.
const PORT: &[Known] = &[
    error("symbol_error"),
    error("link_error_recovery"),
    error("link_downed"),
    error("port_rcv_errors"),
    error("port_rcv_remote_physical_errors"),
    error("local_link_integrity_errors"),
    error("excessive_buffer_overrun_errors"),
    error("port_xmit_constraint_errors"),
    error("port_rcv_constraint_errors"),
    load("port_rcv_switch_relay_errors"),
    load("port_xmit_discards"),
    load("port_xmit_wait"),
    load("VL15_dropped"),
];
/// Counters of the same port in `ports/N/hw_counters`, for each driver. RoCE marks packets (ECN) and tells senders of congestion (CNP). A
/// receiver without a buffer is not ready (RNR).
const HARDWARE: &[&[Known]] = &[
    // mlx5
    &[
        load("local_ack_timeout_err"),
        load("packet_seq_err"),
        load("implied_nak_seq_err"),
        load("out_of_sequence"),
        load("rnr_nak_retry_err"),
        error("rx_icrc_encapsulated"),
        load("out_of_buffer"),
        load("roce_adp_retrans"),
        load("roce_adp_retrans_to"),
        load("roce_slow_restart"),
        load("np_ecn_marked_roce_packets"),
        load("np_cnp_sent"),
        load("rp_cnp_handled"),
    ],
    // EFA
    &[
        load("rx_drops"),
        load("retrans_pkts"),
        load("retrans_timeout_events"),
        load("unresponsive_remote_events"),
        load("impaired_remote_conn_events"),
        error("rdma_read_wr_err"),
        error("rdma_write_wr_err"),
    ],
    // bnxt_re
    &[
        load("to_retransmits"),
        load("seq_err_naks_rcvd"),
        load("rnr_naks_rcvd"),
        load("missing_resp"),
        load("oos_drop_count"),
        load("rx_out_of_buffer"),
        load("rx_roce_discards"),
        load("tx_roce_discards"),
        load("rx_ecn_marked_pkts"),
        load("rx_cnp_pkts"),
        load("tx_cnp_pkts"),
        error("rx_roce_errors"),
        error("tx_roce_errors"),
        error("max_retry_exceeded"),
        error("unrecoverable_err"),
        error("res_rx_pci_err"),
        error("res_tx_pci_err"),
    ],
    // irdma. Newer versions name the counters of TCP without `tcp`.
    &[
        load("ip4InDiscards"),
        load("ip6InDiscards"),
        load("tcpRetransSegs"),
        load("RetransSegs"),
        load("RNR received"),
        load("Nak Sequence Error"),
        load("Nak Sequence Error Implied"),
        load("RTO"),
        load("Rcvd Out of order packets"),
        load("RxECNMrkd"),
        load("cnpHandled"),
        load("cnpSent"),
        error("tcpInOptErrors"),
        error("InOptErrors"),
        error("tcpInProtoErrors"),
        error("InProtoErrors"),
        error("CRC errors"),
    ],
];
/// Counters of an interface.
const INTERFACE: &[Known] = &[error("carrier_down_count")];
/// Counters of an interface, in `statistics`. Frames of protocols that nobody wants, and frames for which the host has no buffer, are
/// dropped too. Fast interfaces may count any frame that they discard as aborted.
const STATISTICS: &[Known] = &[
    error("rx_errors"),
    error("rx_crc_errors"),
    error("rx_frame_errors"),
    error("rx_length_errors"),
    load("rx_fifo_errors"),
    load("rx_missed_errors"),
    load("rx_over_errors"),
    error("tx_errors"),
    load("tx_aborted_errors"),
    error("tx_carrier_errors"),
    error("tx_fifo_errors"),
    error("collisions"),
    load("rx_dropped"),
    load("tx_dropped"),
];
/// Pause frames of an interface, by the netlink of ethtool: sent, and received.
const PAUSE_FRAMES: [&str; 2] = ["tx_pause_frames", "rx_pause_frames"];
/// Sums of the pause frames of all priorities (PFC), by the statistics of the driver: sent, and received.
const PRIORITY_PAUSE_FRAMES: [&str; 2] = ["tx_priority_pause_frames", "rx_priority_pause_frames"];
/// Counters of protocols in the files below, with the start of their lines. Segments are in error if their checksum is wrong; TCP sends some
/// again when it looks for the rate of a link. Routers and switches mark packets when they are congested (ECN, CE).
const PROTOCOLS: &[(&str, Known)] = &[
    ("Tcp", error("InErrs")),
    ("Tcp", load("RetransSegs")),
    ("Udp", error("InCsumErrors")),
    ("Udp", load("RcvbufErrors")),
    ("Udp6", error("InCsumErrors")),
    ("Udp6", load("RcvbufErrors")),
    ("TcpExt", load("TCPTimeouts")),
    ("TcpExt", load("TCPDeliveredCE")),
    ("IpExt", load("InCEPkts")),
    ("Ip6", load("InCEPkts")),
];
/// Counters of a CPU in `thermal_throttle`, with the list in `topology` of the CPUs that have the same counter.
const CPU: &[(&str, Known)] = &[
    ("core_cpus_list", error("core_throttle_count")),
    ("package_cpus_list", error("package_throttle_count")),
];

const CPU_DIRECTORY: &str = "/sys/devices/system/cpu";
const PROTOCOL_FILES: [&str; 3] = ["/proc/net/snmp", "/proc/net/netstat", "/proc/net/snmp6"];
/// Device of the counters of all CPUs.
const CPUS: &str = "cpu";
/// Counters of a kind are read again after this multiple of the time that the last reading took, so that it costs at most 1 % of the time.
const PAUSE_FACTOR: u32 = 100;
/// Longest time until they are read again. A reading of more than 10 ms costs more than 1 % of the time.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Counters by device and name.
type Reading = BTreeMap<(String, &'static str), u64>;
/// File of a counter: device, counter and path.
type CounterFile = (String, Known, String);

/// Counters of this host, and what they were when they were read last.
pub struct DeviceCounters {
    host: String,
    files: Files,
    /// Files of counters that exist.
    counters: Vec<CounterFile>,
    /// Interfaces that count pause frames.
    pausing: Vec<String>,
    /// Interfaces that count pauses by priority.
    pausing_by_priority: Vec<PriorityPauses>,
    last: RefCell<Reading>,
    /// Least time between two readings of one kind, as a multiple of the time that a reading takes.
    factor: u32,
    /// Pauses of the kinds, in order.
    pauses: [Pause; 2],
}

/// Time in which counters are not read.
struct Pause {
    since: Cell<Since>,
    length: Cell<Duration>,
}

impl DeviceCounters {
    /// Reads the counters of this host, as `host`, for the first time.
    pub fn new(host: &str) -> DeviceCounters {
        DeviceCounters::in_files(host, Files::here(), PAUSE_FACTOR)
    }

    /// Reads the counters in these files. They are read again after `factor` times the duration of a reading.
    fn in_files(host: &str, files: Files, factor: u32) -> DeviceCounters {
        let mut counters = Vec::new();
        let mut add = |device: &str, directory: String, all: &[Known]| {
            counters.extend(counter_files(&files, device, &directory, all));
        };
        for name in files.names(ADAPTERS) {
            for port in files.names(&format!("{ADAPTERS}/{name}/ports")) {
                let device = format!("{name} port {port}");
                let directory = format!("{ADAPTERS}/{name}/ports/{port}");
                add(&device, format!("{directory}/counters"), PORT);
                for of_driver in HARDWARE {
                    add(&device, format!("{directory}/hw_counters"), of_driver);
                }
            }
        }
        let interfaces = interfaces(&files);
        for name in &interfaces {
            add(name, format!("{INTERFACES}/{name}"), INTERFACE);
            add(name, format!("{INTERFACES}/{name}/statistics"), STATISTICS);
        }
        let is_cpu =
            |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
        for name in files.names(CPU_DIRECTORY).into_iter().filter(is_cpu) {
            for (_, known) in CPU.iter().filter(|(list, _)| is_first(&files, &name, list)) {
                add(&name, format!("{CPU_DIRECTORY}/{name}/thermal_throttle"), &[*known]);
            }
        }
        let pausing_by_priority =
            interfaces.iter().filter_map(|name| PriorityPauses::new(&files, name)).collect();
        let mut pausing = interfaces;
        pausing.retain(|name| netlink::pause_frames(&files, name).iter().any(Option::is_some));
        let counters = DeviceCounters {
            host: host.to_owned(),
            files,
            counters,
            pausing,
            pausing_by_priority,
            last: RefCell::default(),
            factor,
            // The first reading of the files takes longer than later ones, and a run may have a single short row.
            pauses: CounterKind::ALL
                .map(|_| Pause { since: Cell::new(Since::now()), length: Cell::new(Duration::ZERO) }),
        };
        // The first reading, beside which nothing has grown.
        counters.rest();
        counters
    }

    /// Returns the counters that grew since they were last read, at the end of a row. A counter that was set back did not grow.
    ///
    /// A kind is read only if 100 times the duration of its last reading, but at most 1 s, has passed since then. Otherwise a later row, or
    /// [`DeviceCounters::rest`], returns its growth. Errors mark rows. They have a pause of their own, which is shorter than most rows; drivers
    /// take milliseconds to tell the statistics of load.
    pub fn grown(&self) -> Vec<Growth> {
        let mut now = Reading::new();
        for (kind, pause) in CounterKind::ALL.into_iter().zip(&self.pauses) {
            if pause.since.get().elapsed() >= pause.length.get() {
                let begun = Since::now();
                now.append(&mut self.reading(kind));
                pause.length.set(pause_after(begun.elapsed(), self.factor));
                pause.since.set(Since::now());
            }
        }
        self.growth(now)
    }

    /// Returns all counters that grew since they were last read, at the end of a launch.
    pub fn rest(&self) -> Vec<Growth> {
        let mut now = self.reading(CounterKind::Error);
        now.append(&mut self.reading(CounterKind::Load));
        self.growth(now)
    }

    /// Returns the counters of errors that are not zero, with their growth since the host or a driver started.
    pub fn errors(&self) -> Vec<Growth> {
        let now = self.reading(CounterKind::Error);
        self.differences(&now, &now.keys().map(|key| (key.clone(), 0)).collect())
    }

    /// Returns how much these counters grew since they were read last.
    fn growth(&self, mut now: Reading) -> Vec<Growth> {
        let mut before = self.last.borrow_mut();
        let grown = self.differences(&now, &before);
        before.append(&mut now);
        grown
    }

    /// Returns how much counters grew. Where the kernel does not tell which CPUs share a counter, the CPU with the most counts.
    fn differences(&self, now: &Reading, before: &Reading) -> Vec<Growth> {
        let mut grown: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
        for ((device, counter), value) in now {
            let by = before.get(&(device.clone(), *counter)).and_then(|before| value.checked_sub(*before));
            let device = if is_of_cpu(counter) { CPUS } else { device };
            let most = grown.entry((device.to_owned(), *counter)).or_default();
            *most = by.unwrap_or(0).max(*most);
        }
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

    /// Reads the counters of a kind.
    fn reading(&self, kind: CounterKind) -> Reading {
        let mut found = Reading::new();
        for (device, known, path) in self.counters.iter().filter(|(_, known, _)| known.kind == kind) {
            if let Some(value) = self.files.read(path).and_then(|text| text.parse::<u64>().ok()) {
                found.insert((device.clone(), known.name), value);
            }
        }
        for text in PROTOCOL_FILES.iter().filter_map(|path| self.files.read(path)) {
            let value = |(protocol, known): &(&str, Known)| {
                Some(((String::from(*protocol), known.name), of_protocol(&text, protocol, known.name)?))
            };
            found.extend(PROTOCOLS.iter().filter(|(_, known)| known.kind == kind).filter_map(value));
        }
        if kind == CounterKind::Load {
            self.add_pauses(&mut found);
        }
        found
    }

    /// Reads the pause frames of all interfaces, of all traffic and by priority.
    fn add_pauses(&self, found: &mut Reading) {
        let frames = |name: &String| (name.clone(), PAUSE_FRAMES, netlink::pause_frames(&self.files, name));
        let by_priority = |pauses: &PriorityPauses| {
            (pauses.interface.clone(), PRIORITY_PAUSE_FRAMES, pauses.frames(&self.files))
        };
        let all = self.pausing.iter().map(frames).chain(self.pausing_by_priority.iter().map(by_priority));
        for (name, counters, counts) in all {
            for (counter, count) in counters.into_iter().zip(counts) {
                found.extend(count.map(|count| ((name.clone(), counter), count)));
            }
        }
    }
}

/// Returns the time until counters are read again, after a reading that took this long.
fn pause_after(reading: Duration, factor: u32) -> Duration {
    reading.saturating_mul(factor).min(LONGEST_PAUSE)
}

/// Returns all counters. A name in several lists has the same kind in each.
fn all_known() -> impl Iterator<Item = &'static Known> {
    let of_files = [PORT, INTERFACE, STATISTICS].into_iter().chain(HARDWARE.iter().copied());
    of_files.flatten().chain(PROTOCOLS.iter().chain(CPU).map(|(_, known)| known))
}

fn is_of_cpu(counter: &str) -> bool {
    CPU.iter().any(|(_, known)| known.name == counter)
}

/// Returns whether a CPU is the first in a list of its topology, or has none.
fn is_first(files: &Files, cpu: &str, list: &str) -> bool {
    let text = files.read(&format!("{CPU_DIRECTORY}/{cpu}/topology/{list}")).unwrap_or_default();
    parse_cpus(&text).first().is_none_or(|first| format!("cpu{first}") == cpu)
}

/// Returns the files of a device's counters that exist in a directory.
fn counter_files(files: &Files, device: &str, directory: &str, all: &[Known]) -> Vec<CounterFile> {
    let file = |known: &Known| (device.to_owned(), *known, format!("{directory}/{}", known.name));
    all.iter().map(file).filter(|(_, _, path)| files.exists(path)).collect()
}

/// Returns a counter of a protocol from the text of a file.
fn of_protocol(text: &str, protocol: &str, counter: &str) -> Option<u64> {
    in_two_lines(text, protocol, counter).or_else(|| in_one_line(text, &format!("{protocol}{counter}")))
}

/// Returns a counter from two lines that begin with the name of the protocol: the names of the counters, then their values.
fn in_two_lines(text: &str, protocol: &str, counter: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (names, values) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(values).find(|(name, _)| *name == counter)?.1.parse().ok()
}

/// Returns a counter from a line with its name, which begins with that of the protocol, and its value.
fn in_one_line(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(char::is_whitespace)?;
        if found == name { value.trim().parse::<u64>().ok() } else { None }
    })
}

/// Returns whether a counter that grew stands still while everything is healthy.
pub fn is_error(grown: &Growth) -> bool {
    all_known().any(|known| known.name == grown.counter && known.kind == CounterKind::Error)
}

/// Returns whether a counter that grew counts packets that were sent again.
pub fn is_retransmission(grown: &Growth) -> bool {
    // Every driver, and TCP, names these counters so.
    grown.counter.to_lowercase().contains("retrans")
}

/// Returns whether a counter that grew counts losses of time because a CPU was too hot.
pub fn is_throttling(grown: &Growth) -> bool {
    grown.device == CPUS
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ombx_testkit::Directory;

    use crate::{device_counters::*, machine::driver_information};

    fn write(files: &Files, path: &str, text: impl AsRef<[u8]>) {
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
        for cpu in ["cpu0", "cpu1", "cpu2", "cpufreq"] {
            set(&format!("/sys/devices/system/cpu/{cpu}/thermal_throttle/core_throttle_count"), "1\n");
        }
        // CPUs 0 and 2 are threads of a core.
        for cpu in ["cpu0", "cpu2"] {
            set(&format!("/sys/devices/system/cpu/{cpu}/topology/core_cpus_list"), "0,2\n");
        }
        set("/proc/net/snmp", "Ip: A B\nIp: 1 2\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 5 0\n");
        set("/proc/net/netstat", "TcpExt: TCPTimeouts\nTcpExt: 3\n");
        let counters = DeviceCounters::in_files("n1", files(), 0);
        assert_eq!(counters.grown(), []);
        set(&format!("{port}/counters/symbol_error"), "19\n");
        set(&format!("{port}/counters/port_xmit_wait"), "101\n");
        set("/sys/class/net/eth0/statistics/rx_crc_errors", "5\n");
        set("/sys/class/net/eth0/statistics/collisions", "0\n");
        set("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "3\n");
        set("/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count", "9\n");
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
        let errors: Vec<bool> = grown.iter().map(is_error).collect();
        assert_eq!(errors, [true, false, true, true, false, true]);
        assert!(grown.iter().all(|one| one.host == "n1"));
        let throttling: Vec<bool> = grown.iter().map(is_throttling).collect();
        assert_eq!(throttling, [false, false, true, false, false, false]);
        assert_eq!(counters.grown(), []);
        let twice = Growth::summed(grown.iter().chain(&grown).cloned());
        assert_eq!((twice.len(), twice[0].by), (6, 4));
    }

    #[test]
    fn counters_of_rdma_drivers_are_read() {
        let directory = Directory::new("device-counters-of-drivers");
        let files = || Files { root: directory.path().to_owned() };
        let set = |value: &str| {
            for (device, counter) in [
                ("bnxt_re0", "res_rx_pci_err"),
                ("irdma0", "CRC errors"),
                ("mlx5_0", "out_of_sequence"),
                ("rdmap0", "retrans_pkts"),
            ] {
                write(
                    &files(),
                    &format!("/sys/class/infiniband/{device}/ports/1/hw_counters/{counter}"),
                    value,
                );
            }
        };
        set("1\n");
        let counters = DeviceCounters::in_files("n1", files(), 0);
        set("3\n");
        let texts: Vec<String> = counters.grown().iter().map(Growth::to_string).collect();
        let expected = [
            "bnxt_re0 port 1 res_rx_pci_err +2",
            "irdma0 port 1 CRC errors +2",
            "mlx5_0 port 1 out_of_sequence +2",
            "rdmap0 port 1 retrans_pkts +2",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn each_kind_is_read_after_its_pause_and_at_the_end() {
        let directory = Directory::new("device-counters-pause");
        let files = || Files { root: directory.path().to_owned() };
        let port = "/sys/class/infiniband/mlx5_0/ports/1/counters";
        let set = |value: u64| {
            for counter in ["symbol_error", "port_xmit_wait"] {
                write(&files(), &format!("{port}/{counter}"), format!("{value}\n"));
            }
            let all = [("rx_packets", 7), ("rx_prio3_pause", value), ("tx_prio4_pause", 2 * value)];
            for (file, answer) in driver_information::tests::statistics(&all) {
                write(&files(), &format!("/ethtool/eth0/{file}"), answer);
            }
        };
        write(&files(), "/sys/class/net/eth0/device/vendor", "0x15b3\n");
        set(1);
        let counters = DeviceCounters::in_files("n1", files(), PAUSE_FACTOR);
        let texts = |grown: Vec<Growth>| grown.iter().map(Growth::to_string).collect::<Vec<_>>();
        let all = |by: u64| {
            [
                format!("eth0 rx_priority_pause_frames +{by}"),
                format!("eth0 tx_priority_pause_frames +{}", 2 * by),
                format!("mlx5_0 port 1 port_xmit_wait +{by}"),
                format!("mlx5_0 port 1 symbol_error +{by}"),
            ]
        };
        set(4);
        assert_eq!(texts(counters.grown()), all(3), "no pause yet");
        assert!(counters.pauses.iter().all(|pause| pause.length.get() > Duration::ZERO));
        let pauses = |lengths: [Duration; 2]| {
            counters.pauses.iter().zip(lengths).for_each(|(pause, length)| pause.length.set(length));
        };
        pauses([Duration::ZERO, Duration::MAX]);
        set(5);
        assert_eq!(texts(counters.grown()), ["mlx5_0 port 1 symbol_error +1"]);
        pauses([Duration::MAX, Duration::ZERO]);
        assert_eq!(texts(counters.grown()), all(1)[..3]);
        pauses([Duration::MAX; 2]);
        set(6);
        assert_eq!(counters.grown(), []);
        assert_eq!(texts(counters.rest()), all(1));
        assert_eq!(counters.rest(), []);
    }

    #[test]
    fn the_pause_is_a_multiple_of_the_last_reading_and_at_most_a_second() {
        let [short, long] = [3, 50].map(Duration::from_millis);
        assert_eq!(pause_after(short, PAUSE_FACTOR), Duration::from_millis(300));
        assert_eq!(pause_after(long, PAUSE_FACTOR), Duration::from_secs(1));
        assert_eq!(pause_after(long, 0), Duration::ZERO);
    }

    #[test]
    fn counters_of_protocols_are_found_in_both_forms_of_lines() {
        let by_two =
            "Udp: InDatagrams RcvbufErrors\nUdp: 9 4\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 7 6\n";
        assert_eq!(of_protocol(by_two, "Udp", "RcvbufErrors"), Some(4));
        assert_eq!(of_protocol(by_two, "Udp", "InCsumErrors"), None);
        let by_one = "Ip6InCEPkts             \t3\nUdp6RcvbufErrors 5\nUdpLite6RcvbufErrors    \t8\n";
        assert_eq!(of_protocol(by_one, "Ip6", "InCEPkts"), Some(3));
        assert_eq!(of_protocol(by_one, "Udp6", "RcvbufErrors"), Some(5));
        assert_eq!(of_protocol(by_one, "Udp", "RcvbufErrors"), None);
    }

    #[test]
    fn a_name_in_several_lists_has_one_kind() {
        for one in all_known() {
            assert!(all_known().all(|other| other.name != one.name || other.kind == one.kind), "{one:?}");
        }
    }

    #[test]
    fn this_host_has_counters_and_lacking_ones_are_left_out() {
        let directory = Directory::new("no-device-counters");
        let files = Files { root: directory.path().to_owned() };
        assert_eq!(DeviceCounters::in_files("n1", files, 0).grown(), []);
        let here = DeviceCounters::new("n1");
        assert!(here.last.borrow().keys().any(|(device, _)| device == "Tcp"));
    }
}
