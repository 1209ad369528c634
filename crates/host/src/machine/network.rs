//! Network devices: interfaces of the kernel, and RDMA adapters.

use std::{collections::BTreeSet, fmt};

use ombx_record::cpu_list::{cpu_list, parse_cpus};

use crate::machine::{Files, driver_information, netlink};

/// Property of a device: the CPUs of its NUMA node.
pub const LOCAL_CPUS: &str = "local CPUs";
/// Property of a device: the CPUs that handle its interrupts.
pub const INTERRUPTS: &str = "interrupt CPUs";
/// Property of an interface: its speed, such as `10 Gbit/s of 25 Gbit/s`.
pub const SPEED: &str = "speed";
/// End of a property of an RDMA adapter: the rate of a port, such as `100 Gb/sec (4X EDR)`.
pub const RATE: &str = "rate";
/// End of a property of an RDMA adapter: the state of a port, which is [`ACTIVE`] if the port carries messages.
pub const STATE: &str = "state";
/// State of a port that carries messages.
pub const ACTIVE: &str = "ACTIVE";
/// Interfaces of the kernel.
pub(crate) const INTERFACES: &str = "/sys/class/net";
/// RDMA adapters.
pub(crate) const ADAPTERS: &str = "/sys/class/infiniband";
/// Flags of an interface (`if.h`): it is up, it is a loopback.
const UP: u32 = 0x1;
const LOOPBACK: u32 = 0x8;
/// Files that name the vendors and devices of PCI.
const PCI_NAMES: [&str; 3] = ["/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/pci.ids"];

/// A network device: a description for people, and its properties by name.
pub(super) struct Device {
    pub(super) name: String,
    pub(super) sentence: String,
    pub(super) properties: Vec<(String, String)>,
}

/// Returns the interfaces that carry messages, with bonds and VLANs, and the RDMA adapters.
pub(super) fn devices(files: &Files) -> Vec<Device> {
    let mut names = interfaces(files);
    let is_more = |name: &String| is_bond_or_vlan(files, name) && is_up(files, name) && !names.contains(name);
    let more: Vec<String> = files.names(INTERFACES).into_iter().filter(is_more).collect();
    names.extend(more);
    names.sort();
    let interfaces = names.into_iter().map(|name| {
        if is_bond_or_vlan(files, &name) { bond_or_vlan(files, name) } else { interface(files, name) }
    });
    let adapters = files.names(ADAPTERS).into_iter().map(|name| adapter(files, name));
    interfaces.chain(adapters).collect()
}

/// Returns the interfaces with hardware that are not down. If there is none, as in a container, those without hardware that are up.
///
/// Bonds and VLANs above hardware are left out: their counters would count the events of the hardware again.
pub(crate) fn interfaces(files: &Files) -> Vec<String> {
    let (with_hardware, without): (Vec<String>, Vec<String>) = files
        .names(INTERFACES)
        .into_iter()
        .partition(|name| files.exists(&format!("{INTERFACES}/{name}/device")));
    let state = |name: &str| files.read(&format!("{INTERFACES}/{name}/operstate"));
    let in_use: Vec<String> =
        with_hardware.into_iter().filter(|name| state(name).as_deref() != Some("down")).collect();
    if in_use.is_empty() { without.into_iter().filter(|name| is_up(files, name)).collect() } else { in_use }
}

/// Returns whether an interface is up and no loopback.
fn is_up(files: &Files, name: &str) -> bool {
    let flags = files.read(&format!("{INTERFACES}/{name}/flags"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok());
    flags.is_some_and(|flags| flags & (UP | LOOPBACK) == UP)
}

fn is_bond(files: &Files, name: &str) -> bool {
    files.exists(&format!("{INTERFACES}/{name}/bonding"))
}

/// Returns whether an interface is a bond or a VLAN, which sends through other interfaces.
fn is_bond_or_vlan(files: &Files, name: &str) -> bool {
    let events = files.read(&format!("{INTERFACES}/{name}/uevent")).unwrap_or_default();
    is_bond(files, name) || events.lines().any(|line| line == "DEVTYPE=vlan")
}

/// Describes a bond or a VLAN: `bond0: bond of eth0 eth1, 50 Gbit/s, MTU 9000`. Its other properties are those of the interfaces below.
fn bond_or_vlan(files: &Files, name: String) -> Device {
    let kind = if is_bond(files, &name) {
        let members = files.read(&format!("{INTERFACES}/{name}/bonding/slaves"));
        members.map_or_else(|| "bond".to_owned(), |members| format!("bond of {members}"))
    } else {
        "VLAN".to_owned()
    };
    let speed = megabits_of(files, &name).map(in_words);
    let mtu = files.read(&format!("{INTERFACES}/{name}/mtu"));
    let parts = [Some(kind), speed.clone(), mtu.as_ref().map(|mtu| format!("MTU {mtu}"))];
    let sentence = format!("{name}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    let properties = [(SPEED, speed), ("MTU", mtu)];
    let properties =
        properties.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Device { name, sentence, properties }
}

/// Returns the speed of an interface in Mbit/s. The kernel reports -1 for devices without a speed.
fn megabits_of(files: &Files, name: &str) -> Option<u64> {
    files.read(&format!("{INTERFACES}/{name}/speed"))?.parse::<u64>().ok().filter(|megabits| *megabits > 0)
}

/// Describes a speed in Mbit/s: `25 Gbit/s`.
fn in_words(megabits: u64) -> String {
    match megabits % 1000 {
        0 => format!("{} Gbit/s", megabits / 1000),
        _ => format!("{megabits} Mbit/s"),
    }
}

/// Returns the speed in use in Mbit/s from the property of an interface or of a port: 10000 for `10 Gbit/s of 25 Gbit/s`, 2500 for
/// `2.5 Gb/sec (1X SDR)`.
pub fn megabits(speed: &str) -> Option<u64> {
    let mut words = speed.split(' ');
    let number = words.next()?.parse::<f64>().ok()?;
    match words.next()? {
        "Gbit/s" | "Gb/sec" => Some((number * 1000.0) as u64),
        "Mbit/s" => Some(number as u64),
        _ => None,
    }
}

/// Describes an interface: `eth0: Intel .. X710, driver i40e, 10 Gbit/s, MTU 9000`.
fn interface(files: &Files, name: String) -> Device {
    let directory = format!("{INTERFACES}/{name}");
    let read = |file: &str| files.read(&format!("{directory}/{file}"));
    let driver = files.link(&format!("{directory}/device/driver"));
    let version = driver.as_ref().and_then(|driver| files.read(&format!("/sys/module/{driver}/version")));
    let driver = driver.map(|driver| match version {
        Some(version) => format!("{driver} {version}"),
        None => driver,
    });
    let highest = netlink::highest_speed(files, &name);
    let speed = megabits_of(files, &name).map(|used| match highest.filter(|highest| *highest > used) {
        Some(highest) => format!("{} of {}", in_words(used), in_words(highest)),
        None => in_words(used),
    });
    let mtu = read("mtu");
    let parts = [
        Some(model(files, &directory).unwrap_or_else(|| "model not reported".into())),
        Some(driver.as_ref().map_or("driver not reported".into(), |driver| format!("driver {driver}"))),
        Some(speed.clone().unwrap_or_else(|| "speed not reported".into())),
        mtu.as_ref().map(|mtu| format!("MTU {mtu}")),
    ];
    let sentence = format!("{name}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    let duplex = read("duplex").filter(|duplex| duplex != "unknown");
    // Bonds tell another version there, but only interfaces with hardware are asked.
    let firmware = files.link(&format!("{directory}/device")).and_then(|device| {
        netlink::firmware(files, &device).or_else(|| driver_information::firmware(files, &name))
    });
    let (offloads, pause) = (netlink::offloads(files, &name), netlink::pauses(files, &name));
    let own = [
        (SPEED, speed),
        ("duplex", duplex),
        ("MTU", mtu),
        ("driver", driver),
        ("firmware", firmware),
        ("offloads", offloads),
        ("pause", pause),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let properties = own.chain(attachment(files, &directory)).collect();
    Device { name, sentence, properties }
}

/// Returns how a device is attached to its host: PCI Express, NUMA node and the CPUs of that node.
fn attachment(files: &Files, directory: &str) -> impl Iterator<Item = (String, String)> {
    let pci = pci_device(files, directory);
    let read = |file: &str| files.read(&format!("{pci}/{file}"));
    // The kernel reports -1 for a device that belongs to no node.
    let node = read("numa_node").filter(|node| node != "-1");
    let cpus = read("local_cpulist").filter(|_| node.is_some());
    let interrupts = interrupt_cpus(files, &pci).map(|handling| match &cpus {
        Some(near) if !parse_cpus(near).iter().any(|cpu| handling.contains(cpu)) => {
            format!("{} instead of {near}", cpu_list(&handling))
        }
        _ => cpu_list(&handling),
    });
    let all = [
        ("PCIe", pci_express(files, &pci)),
        ("NUMA node", node),
        (LOCAL_CPUS, cpus),
        (INTERRUPTS, interrupts),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Returns the directory of the PCI device of an interface or adapter, or of its device on another bus.
fn pci_device(files: &Files, directory: &str) -> String {
    let device = format!("{directory}/device");
    // A virtual interface is on the bus virtio, and a part of an adapter on the bus auxiliary, below their PCI device.
    let above = format!("{device}/..");
    if !is_on_pci(files, &device) && is_on_pci(files, &above) { above } else { device }
}

fn is_on_pci(files: &Files, device: &str) -> bool {
    files.link(&format!("{device}/subsystem")).as_deref() == Some("pci")
}

/// A link of PCI Express: its speed as the kernel writes it, such as `8.0 GT/s`, and its lanes.
#[derive(PartialEq)]
struct PcieLink {
    speed: String,
    lanes: u32,
}

impl PcieLink {
    /// Reads the link of a PCI device that is in use (`current`), or the best that it can (`max`).
    fn new(files: &Files, pci: &str, which: &str) -> Option<PcieLink> {
        let read = |file: &str| files.read(&format!("{pci}/{which}_link_{file}"));
        let speed = read("speed").filter(|speed| speed != "Unknown")?;
        let lanes = read("width")?.parse::<u32>().ok().filter(|lanes| *lanes != 0 && *lanes != 255)?;
        Some(PcieLink { speed: speed.trim_end_matches(" PCIe").to_owned(), lanes })
    }

    /// Returns whether it is slower than another link, or has fewer lanes.
    fn is_below(&self, other: &PcieLink) -> bool {
        let number = |link: &PcieLink| link.speed.split(' ').next()?.parse::<f64>().ok();
        let is_slower = number(self).zip(number(other)).is_some_and(|(own, other)| own < other);
        is_slower || self.lanes < other.lanes
    }
}

impl fmt::Display for PcieLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{}", self.speed, self.lanes)
    }
}

/// Describes the link of a PCI device: after `of` what the device can if that is more, and the port above it if that can less than the
/// device, as in `8.0 GT/s x8 of 16.0 GT/s x16 (port above 8.0 GT/s x8)`. The port above may be that of the slot, of a switch in a
/// backplane, or of a switch on the card.
fn pci_express(files: &Files, pci: &str) -> Option<String> {
    let used = PcieLink::new(files, pci, "current")?;
    let Some(most) = PcieLink::new(files, pci, "max").filter(|most| *most != used) else {
        return Some(used.to_string());
    };
    let above = PcieLink::new(files, &format!("{pci}/.."), "max").filter(|above| above.is_below(&most));
    let above = above.map_or_else(String::new, |above| format!(" (port above {above})"));
    Some(format!("{used} of {most}{above}"))
}

/// Returns the CPUs that handle the interrupts of a PCI device.
fn interrupt_cpus(files: &Files, pci: &str) -> Option<BTreeSet<u32>> {
    let numbers = files.names(&format!("{pci}/msi_irqs"));
    let handling = |number: &String| {
        // An interrupt that is not in use has an empty list.
        files.read(&format!("/proc/irq/{number}/effective_affinity_list"))
    };
    let cpus: BTreeSet<u32> =
        numbers.iter().filter_map(handling).flat_map(|list| parse_cpus(&list)).collect();
    (!cpus.is_empty()).then_some(cpus)
}

/// Returns the name of an interface's PCI device, or its numbers.
fn model(files: &Files, directory: &str) -> Option<String> {
    let (vendor, device) = pci_numbers(files, &pci_device(files, directory))?;
    let numbers = format!("PCI {vendor}:{device}");
    let names = PCI_NAMES.iter().find_map(|path| files.read(path));
    Some(match names.and_then(|names| pci_name(&names, &vendor, &device)) {
        Some(name) => format!("{name} ({numbers})"),
        None => numbers,
    })
}

/// Returns the numbers of the vendor and of the model of a PCI device; `None` for a device on another bus.
fn pci_numbers(files: &Files, device: &str) -> Option<(String, String)> {
    let number = |file: &str| {
        let text = files.read(&format!("{device}/{file}"))?;
        text.strip_prefix("0x").map(str::to_owned)
    };
    is_on_pci(files, device).then(|| number("vendor").zip(number("device"))).flatten()
}

/// Finds a device in a list of PCI names. Lines of vendors begin with their number, those of devices with one tab.
fn pci_name(names: &str, vendor: &str, device: &str) -> Option<String> {
    let mut lines = names.lines().skip_while(|line| !line.starts_with(vendor));
    let vendor = lines.next()?.split_once("  ")?.1;
    let mut devices = lines.take_while(|line| line.starts_with('\t') || line.starts_with('#'));
    let device =
        devices.find_map(|line| line.strip_prefix('\t')?.strip_prefix(device)?.strip_prefix("  "))?;
    Some(format!("{vendor} {device}"))
}

/// Describes an RDMA adapter: `mlx5_0: MT4123, firmware 20.31.1014, driver mlx5_core, port 1 InfiniBand 200 Gb/sec (4X HDR) ACTIVE`.
fn adapter(files: &Files, name: String) -> Device {
    let directory = format!("{ADAPTERS}/{name}");
    let read = |file: &str| files.read(&format!("{directory}/{file}"));
    let firmware = read("fw_ver");
    let driver = files.link(&format!("{directory}/device/driver"));
    let mut parts: Vec<String> = Vec::from_iter(read("hca_type").or_else(|| model(files, &directory)));
    parts.extend(firmware.as_ref().map(|version| format!("firmware {version}")));
    parts.extend(driver.as_ref().map(|driver| format!("driver {driver}")));
    let own = [("model", read("hca_type")), ("firmware", firmware), ("driver", driver)];
    let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut properties: Vec<(String, String)> = own.chain(attachment(files, &directory)).collect();
    for port in files.names(&format!("{directory}/ports")) {
        let of_port = |file: &str| read(&format!("ports/{port}/{file}"));
        // A state is a number and a word: `4: ACTIVE`.
        let state = of_port("state").and_then(|state| Some(state.split_once(": ")?.1.to_owned()));
        let (layer, rate) = (of_port("link_layer"), of_port("rate"));
        properties.extend(rate.clone().map(|rate| (format!("port {port} {RATE}"), rate)));
        properties.extend(state.clone().map(|state| (format!("port {port} {STATE}"), state)));
        let words: Vec<String> = [layer, rate, state].into_iter().flatten().collect();
        parts.push(format!("port {port} {}", words.join(" ")));
    }
    let interfaces = files.names(&format!("{directory}/device/net"));
    parts.extend(interfaces.into_iter().map(|name| format!("interface {name}")));
    Device { sentence: format!("{name}: {}", parts.join(", ")), name, properties }
}
