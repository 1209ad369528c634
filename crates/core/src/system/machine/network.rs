//! Network devices: interfaces of the kernel, and RDMA adapters.

use std::collections::BTreeSet;

use super::{Files, netlink};
use crate::system::environment::{cpu_list, parse_cpus};

/// Property of a device: the CPUs of its NUMA node.
pub const LOCAL_CPUS: &str = "local CPUs";
/// Property of a device: the CPUs that handle its interrupts.
pub const INTERRUPTS: &str = "interrupt CPUs";
/// Interfaces of the kernel.
pub(in crate::system) const INTERFACES: &str = "/sys/class/net";
/// RDMA adapters.
pub(in crate::system) const ADAPTERS: &str = "/sys/class/infiniband";
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

/// Returns the interfaces that carry messages, and the RDMA adapters.
pub(super) fn devices(files: &Files) -> Vec<Device> {
    let interfaces = interfaces(files).into_iter().map(|name| interface(files, name));
    let adapters = files.names(ADAPTERS).into_iter().map(|name| adapter(files, name));
    interfaces.chain(adapters).collect()
}

/// Returns the interfaces with hardware that are not down. If there is none, as in a container, those without hardware that are up.
pub(in crate::system) fn interfaces(files: &Files) -> Vec<String> {
    let read = |name: &str, file: &str| files.read(&format!("{INTERFACES}/{name}/{file}"));
    let is_up = |name: &String| {
        let flags =
            read(name, "flags").and_then(|flags| u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok());
        flags.is_some_and(|flags| flags & (UP | LOOPBACK) == UP)
    };
    let (with_hardware, without): (Vec<String>, Vec<String>) = files
        .names(INTERFACES)
        .into_iter()
        .partition(|name| files.exists(&format!("{INTERFACES}/{name}/device")));
    let is_down = |name: &String| read(name, "operstate").as_deref() == Some("down");
    let in_use: Vec<String> = with_hardware.into_iter().filter(|name| !is_down(name)).collect();
    if in_use.is_empty() { without.into_iter().filter(is_up).collect() } else { in_use }
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
    // The kernel reports -1 for devices without a speed.
    let mbit = read("speed").and_then(|speed| speed.parse::<i64>().ok()).filter(|mbit| *mbit > 0);
    let highest = netlink::highest_speed(files, &name).and_then(|mbit| i64::try_from(mbit).ok());
    let in_words = |mbit: i64| match mbit % 1000 {
        0 => format!("{} Gbit/s", mbit / 1000),
        _ => format!("{mbit} Mbit/s"),
    };
    let speed = mbit.map(|mbit| match highest.filter(|highest| *highest > mbit) {
        Some(highest) => format!("{} of {}", in_words(mbit), in_words(highest)),
        None => in_words(mbit),
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
    let firmware = files.link(&format!("{directory}/device")).and_then(|pci| netlink::firmware(files, &pci));
    let (offloads, pause) = (netlink::offloads(files, &name), netlink::pauses(files, &name));
    let own = [
        ("speed", speed),
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
    let read = |file: &str| files.read(&format!("{directory}/device/{file}"));
    let link = |which: &str| {
        let (speed, lanes) = (read(&format!("{which}_link_speed"))?, read(&format!("{which}_link_width"))?);
        let speed = speed.trim_end_matches(" PCIe");
        (lanes != "0" && lanes != "255" && speed != "Unknown").then(|| format!("{speed} x{lanes}"))
    };
    let pcie = link("current").map(|used| match link("max") {
        Some(most) if most != used => format!("{used} of {most}"),
        _ => used,
    });
    // The kernel reports -1 for a device that belongs to no node.
    let node = read("numa_node").filter(|node| node != "-1");
    let cpus = read("local_cpulist").filter(|_| node.is_some());
    let interrupts = interrupt_cpus(files, directory).map(|handling| match &cpus {
        Some(near) if !parse_cpus(near).iter().any(|cpu| handling.contains(cpu)) => {
            format!("{} instead of {near}", cpu_list(&handling))
        }
        _ => cpu_list(&handling),
    });
    let all = [("PCIe", pcie), ("NUMA node", node), (LOCAL_CPUS, cpus), (INTERRUPTS, interrupts)];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Returns the CPUs that handle the interrupts of a device.
fn interrupt_cpus(files: &Files, directory: &str) -> Option<BTreeSet<u32>> {
    // The interrupts of a virtual interface are those of the PCI device above it.
    let numbers =
        ["device", "device/.."].map(|device| files.names(&format!("{directory}/{device}/msi_irqs")));
    let numbers = numbers.into_iter().find(|numbers| !numbers.is_empty())?;
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
    // The device of a virtual interface is on the bus virtio, below its PCI device.
    let (vendor, device) = pci_numbers(files, &format!("{directory}/device"))
        .or_else(|| pci_numbers(files, &format!("{directory}/device/..")))?;
    let numbers = format!("PCI {vendor}:{device}");
    let names = PCI_NAMES.iter().find_map(|path| files.read(path));
    Some(match names.and_then(|names| pci_name(&names, &vendor, &device)) {
        Some(name) => format!("{name} ({numbers})"),
        None => numbers,
    })
}

/// Returns the numbers of the vendor and of the model of a PCI device; `None` for a device on another bus.
fn pci_numbers(files: &Files, device: &str) -> Option<(String, String)> {
    let bus = files.link(&format!("{device}/subsystem"))?;
    let number = |file: &str| {
        let text = files.read(&format!("{device}/{file}"))?;
        text.strip_prefix("0x").map(str::to_owned)
    };
    (bus == "pci").then(|| number("vendor").zip(number("device"))).flatten()
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
        properties.extend(rate.clone().map(|rate| (format!("port {port} rate"), rate)));
        properties.extend(state.clone().map(|state| (format!("port {port} state"), state)));
        let words: Vec<String> = [layer, rate, state].into_iter().flatten().collect();
        parts.push(format!("port {port} {}", words.join(" ")));
    }
    let interfaces = files.names(&format!("{directory}/device/net"));
    parts.extend(interfaces.into_iter().map(|name| format!("interface {name}")));
    Device { sentence: format!("{name}: {}", parts.join(", ")), name, properties }
}
