//! Network devices with hardware: interfaces of the kernel, and RDMA adapters.

use crate::{fact::Fact, system::machine::Files};

const INTERFACES: &str = "/sys/class/net";
const ADAPTERS: &str = "/sys/class/infiniband";
/// Files that name the vendors and devices of PCI.
const PCI_NAMES: [&str; 3] = ["/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/pci.ids"];

pub(super) fn devices(files: &Files) -> Fact {
    let interfaces = files.names(INTERFACES).into_iter().filter_map(|name| interface(files, &name));
    let adapters = files.names(ADAPTERS).into_iter().map(|name| adapter(files, &name));
    let all: Vec<String> = interfaces.chain(adapters).collect();
    Fact::of((!all.is_empty()).then(|| all.join("; ")), "no network interface with hardware is up")
}

/// Describes an interface with hardware that is not down: `eth0: Intel .. X710, driver i40e, 10 Gbit/s, MTU 9000`.
fn interface(files: &Files, name: &str) -> Option<String> {
    let directory = format!("{INTERFACES}/{name}");
    let read = |file: &str| files.read(&format!("{directory}/{file}"));
    if !files.exists(&format!("{directory}/device")) || read("operstate").as_deref() == Some("down") {
        return None;
    }
    let driver = files.link(&format!("{directory}/device/driver"));
    let version = driver.as_ref().and_then(|driver| files.read(&format!("/sys/module/{driver}/version")));
    let driver = driver.map(|driver| match version {
        Some(version) => format!("driver {driver} {version}"),
        None => format!("driver {driver}"),
    });
    // The kernel reports -1 for devices without a speed.
    let mbit = read("speed").and_then(|speed| speed.parse::<i64>().ok()).filter(|mbit| *mbit > 0);
    let speed = match mbit {
        Some(mbit) if mbit % 1000 == 0 => format!("{} Gbit/s", mbit / 1000),
        Some(mbit) => format!("{mbit} Mbit/s"),
        None => "speed not reported".into(),
    };
    let parts = [
        Some(model(files, &directory).unwrap_or_else(|| "model not reported".into())),
        Some(driver.unwrap_or_else(|| "driver not reported".into())),
        Some(speed),
        read("mtu").map(|mtu| format!("MTU {mtu}")),
    ];
    Some(format!("{name}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

/// Returns the name of an interface's PCI device, or its numbers.
fn model(files: &Files, directory: &str) -> Option<String> {
    // The device of a virtual interface is on the bus virtio, below its PCI device.
    let on_pci = |device: &str| {
        let bus = files.link(&format!("{directory}/{device}/subsystem"))?;
        let number = |file: &str| {
            let text = files.read(&format!("{directory}/{device}/{file}"))?;
            text.strip_prefix("0x").map(str::to_owned)
        };
        (bus == "pci").then(|| number("vendor").zip(number("device"))).flatten()
    };
    let (vendor, device) = on_pci("device").or_else(|| on_pci("device/.."))?;
    let numbers = format!("PCI {vendor}:{device}");
    let names = PCI_NAMES.iter().find_map(|path| files.read(path));
    Some(match names.and_then(|names| pci_name(&names, &vendor, &device)) {
        Some(name) => format!("{name} ({numbers})"),
        None => numbers,
    })
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
fn adapter(files: &Files, name: &str) -> String {
    let directory = format!("{ADAPTERS}/{name}");
    let read = |file: &str| files.read(&format!("{directory}/{file}"));
    let mut parts: Vec<String> = Vec::from_iter(read("hca_type").or_else(|| model(files, &directory)));
    parts.extend(read("fw_ver").map(|version| format!("firmware {version}")));
    parts.extend(files.link(&format!("{directory}/device/driver")).map(|driver| format!("driver {driver}")));
    for port in files.names(&format!("{directory}/ports")) {
        let of_port = |file: &str| read(&format!("ports/{port}/{file}"));
        // A state is a number and a word: `4: ACTIVE`.
        let state = of_port("state").and_then(|state| Some(state.split_once(": ")?.1.to_owned()));
        let words: Vec<String> =
            [of_port("link_layer"), of_port("rate"), state].into_iter().flatten().collect();
        parts.push(format!("port {port} {}", words.join(" ")));
    }
    let interfaces = files.names(&format!("{directory}/device/net"));
    parts.extend(interfaces.into_iter().map(|name| format!("interface {name}")));
    format!("{name}: {}", parts.join(", "))
}
