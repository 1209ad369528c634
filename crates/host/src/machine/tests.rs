//! Machines whose files a test writes, and this machine.

use std::{fs, os::unix::fs::symlink};

use ombx_testkit::Directory;

use crate::machine::*;

/// A machine of a test. Dropping it removes its files.
struct Machine {
    files: Files,
    _directory: Directory,
}

impl Machine {
    fn new(test: &str, texts: &[(&str, &str)]) -> Machine {
        let directory = Directory::new(&format!("machine-{test}"));
        let files = Files { root: directory.path().to_owned() };
        for (path, text) in texts {
            let path = files.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Machine { files, _directory: directory }
    }

    fn fact(&self, name: &str) -> Fact {
        facts_in(&self.files)[name].clone()
    }
}

fn known(text: &str) -> Fact {
    Fact::Known(text.into())
}

#[test]
fn a_server_is_described() {
    let cpu = |n: u32, file: &str| format!("/sys/devices/system/cpu/cpu{n}/{file}");
    let mut files: Vec<(String, &str)> = vec![
        (
            "/proc/cpuinfo".into(),
            "model name\t: Xeon 1\nmicrocode\t: 0x2b\nflags\t\t: fpu vme\n\nmodel name\t: Xeon 1\n",
        ),
        ("/sys/devices/system/cpu/online".into(), "0-3\n"),
        ("/sys/devices/system/cpu/smt/control".into(), "on\n"),
        ("/sys/devices/system/cpu/smt/active".into(), "1\n"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo".into(), "1\n"),
        ("/sys/devices/system/node/node0/cpulist".into(), "0,2\n"),
        ("/sys/devices/system/node/node1/cpulist".into(), "1,3\n"),
        ("/proc/meminfo".into(), "MemTotal:       263856128 kB\nMemFree: 1 kB\n"),
        ("/proc/sys/kernel/osrelease".into(), "6.1.0-1\n"),
        ("/proc/cmdline".into(), "quiet nosmt=off\n"),
        ("/proc/sys/net/ipv4/tcp_congestion_control".into(), "cubic\n"),
        ("/etc/os-release".into(), "NAME=x\nPRETTY_NAME=\"Debian 12\"\n"),
    ];
    // Two sockets of one core with two threads each.
    for n in 0..4 {
        files.push((cpu(n, "topology/physical_package_id"), if n % 2 == 0 { "0\n" } else { "1\n" }));
        files.push((cpu(n, "topology/core_id"), "0\n"));
        files
            .push((cpu(n, "cpufreq/scaling_governor"), if n == 3 { "powersave\n" } else { "performance\n" }));
        files.push((cpu(n, "cpufreq/scaling_driver"), "intel_pstate\n"));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let machine = Machine::new("server", &files);
    for (name, value) in [
        ("cpu", "Xeon 1"),
        ("microcode", "0x2b"),
        ("sockets", "2"),
        ("cores", "2"),
        ("threads", "4"),
        ("smt", "on"),
        ("numa", "2 nodes, their CPUs 0: 0,2; 1: 1,3"),
        ("governor", "performance (intel_pstate), powersave (intel_pstate)"),
        ("turbo", "off"),
        ("memory", "251.6 GiB"),
        ("kernel", "Linux 6.1.0-1"),
        ("kernel_command_line", "quiet nosmt=off"),
        ("tcp_congestion", "cubic"),
        ("os", "Debian 12"),
        ("virtual_machine", "none"),
    ] {
        assert_eq!(machine.fact(name), known(value), "{name}");
    }
}

#[test]
fn limits_of_control_groups_are_facts() {
    let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let machine = |quota: &str, memory: &str| {
        let texts = [
            ("/proc/self/mountinfo", mounts),
            ("/proc/self/cgroup", "0::/job\n"),
            ("/proc/meminfo", "MemTotal: 8388608 kB\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/fs/cgroup/job/cpu.max", quota),
            ("/sys/fs/cgroup/job/memory.max", memory),
        ];
        let facts = facts_in(&Machine::new("quota", &texts).files);
        (facts["cpu_quota"].clone(), facts["memory"].clone())
    };
    let limited = machine("150000 100000\n", "3221225472\n");
    assert_eq!(limited, (known("1.5 of 4 CPUs"), known("8.0 GiB, of which control groups allow 3.0 GiB")));
    assert_eq!(machine("400000 100000\n", "9223372036854771712\n"), (known("none"), known("8.0 GiB")));
}

#[test]
fn what_the_kernel_does_not_say_is_unknown_with_a_reason() {
    let machine = Machine::new("empty", &[]);
    for (name, fact) in facts_in(&machine.files) {
        match fact {
            Fact::Unknown { reason } => assert!(!reason.is_empty(), "{name}"),
            Fact::Known(value) => assert_eq!((name.as_str(), value.as_str()), ("container", "none")),
        }
    }
}

#[test]
fn interfaces_without_hardware_are_left_out() {
    let machine = Machine::new(
        "network",
        &[
            ("/sys/class/net/lo/mtu", "65536\n"),
            ("/sys/class/net/eth0/mtu", "9000\n"),
            ("/sys/class/net/eth0/speed", "25000\n"),
            ("/sys/class/net/eth0/operstate", "up\n"),
            ("/sys/class/net/eth0/device/vendor", "0x15b3\n"),
            ("/sys/class/net/eth0/device/device", "0x1017\n"),
            ("/sys/class/net/eth1/operstate", "down\n"),
            ("/sys/class/net/eth1/device/vendor", "0x15b3\n"),
            ("/sys/class/net/eth2/speed", "-1\n"),
            ("/sys/class/net/eth2/device/x", ""),
            ("/sys/bus/pci/x", ""),
            ("/sys/module/mlx5_core/version", "24.1\n"),
            (
                "/usr/share/misc/pci.ids",
                "15b2  Other\n\t1017  Wrong\n15b3  Mellanox\n# c\n\t1016  Old\n\t1017  ConnectX-5\n\
                 \t\t15b3 0001  Board\n",
            ),
            ("/sys/class/infiniband/mlx5_0/hca_type", "MT4119\n"),
            ("/sys/class/infiniband/mlx5_0/fw_ver", "16.1\n"),
            ("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n"),
            ("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
            ("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
        ],
    );
    let device = machine.files.path("/sys/class/net/eth0/device");
    symlink("/sys/bus/pci", device.join("subsystem")).unwrap();
    symlink("/sys/bus/pci/drivers/mlx5_core", device.join("driver")).unwrap();
    let fact = machine.fact("network");
    let parts: Vec<&str> = fact.known().unwrap().split("; ").collect();
    assert_eq!(
        parts,
        [
            "eth0: Mellanox ConnectX-5 (PCI 15b3:1017), driver mlx5_core 24.1, 25 Gbit/s, MTU 9000",
            "eth2: model not reported, driver not reported, speed not reported",
            "mlx5_0: MT4119, firmware 16.1, port 1 InfiniBand 100 Gb/sec (4X EDR) ACTIVE",
        ]
    );
}

#[test]
fn virtual_machines_and_containers_are_named() {
    let cpu = "flags\t: fpu hypervisor\n";
    let vm = Machine::new(
        "vm",
        &[
            ("/proc/cpuinfo", cpu),
            ("/sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("/proc/1/cgroup", "0::/kubepods/x\n"),
        ],
    );
    assert_eq!(vm.fact("virtual_machine"), known("yes: QEMU"));
    assert_eq!(vm.fact("container"), known("Kubernetes"));
    let bare = Machine::new("bare", &[("/proc/cpuinfo", cpu), ("/.dockerenv", "")]);
    assert_eq!(bare.fact("virtual_machine"), known("yes, of a hypervisor without a name"));
    assert_eq!(bare.fact("container"), known("Docker"));
    let metal = Machine::new(
        "metal",
        &[("/proc/cpuinfo", "flags\t: fpu\n"), ("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n")],
    );
    assert_eq!(metal.fact("virtual_machine"), known("none"));
}

#[test]
fn this_machine_has_a_kernel_and_cpus() {
    let facts = facts();
    assert!(facts["kernel"].known().is_some_and(|kernel| kernel.starts_with("Linux ")), "{facts:?}");
    assert!(facts["threads"].known().is_some_and(|count| count.parse::<u32>().unwrap() > 0), "{facts:?}");
    assert!(facts.values().all(|fact| !matches!(fact, Fact::Known(value) if value.contains('\0'))));
}

#[test]
fn properties_of_devices_are_facts() {
    let net = "/sys/class/net/eth0";
    let adapter = "/sys/class/infiniband/mlx5_0";
    let file = |directory: &str, name: &str| format!("{directory}/{name}");
    let texts = [
        (file(net, "operstate"), "up\n"),
        (file(net, "speed"), "25000\n"),
        (file(net, "duplex"), "full\n"),
        (file(net, "mtu"), "9000\n"),
        (file(net, "device/current_link_speed"), "8.0 GT/s PCIe\n"),
        (file(net, "device/current_link_width"), "8\n"),
        (file(net, "device/max_link_speed"), "8.0 GT/s PCIe\n"),
        (file(net, "device/max_link_width"), "8\n"),
        (file(net, "device/numa_node"), "-1\n"),
        (file(adapter, "fw_ver"), "20.31.1014\n"),
        (file(adapter, "device/current_link_speed"), "8.0 GT/s PCIe\n"),
        (file(adapter, "device/current_link_width"), "8\n"),
        (file(adapter, "device/max_link_speed"), "16.0 GT/s PCIe\n"),
        (file(adapter, "device/max_link_width"), "16\n"),
        (file(adapter, "device/numa_node"), "1\n"),
        (file(adapter, "device/local_cpulist"), "16-31\n"),
        (file(adapter, "ports/1/rate"), "100 Gb/sec (2X HDR)\n"),
        (file(adapter, "ports/1/state"), "4: ACTIVE\n"),
        ("/sys/devices/system/cpu/online".to_owned(), "0\n"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq".to_owned(), "2000000\n"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq".to_owned(), "3500000\n"),
    ];
    let texts = texts.each_ref().map(|(path, text)| (path.as_str(), *text));
    let machine = Machine::new("devices", &texts);
    let facts = facts_in(&machine.files);
    let of_devices =
        facts.iter().filter_map(|(name, fact)| Some((device_of(name)?, name.as_str(), fact.known()?)));
    let expected = [
        ("cpu", "cpu frequency limit", "2.00 GHz of 3.50 GHz"),
        ("eth0", "eth0 MTU", "9000"),
        ("eth0", "eth0 PCIe", "8.0 GT/s x8"),
        ("eth0", "eth0 duplex", "full"),
        ("eth0", "eth0 speed", "25 Gbit/s"),
        ("mlx5_0", "mlx5_0 NUMA node", "1"),
        ("mlx5_0", "mlx5_0 PCIe", "8.0 GT/s x8 of 16.0 GT/s x16"),
        ("mlx5_0", "mlx5_0 firmware", "20.31.1014"),
        ("mlx5_0", "mlx5_0 local CPUs", "16-31"),
        ("mlx5_0", "mlx5_0 port 1 rate", "100 Gb/sec (2X HDR)"),
        ("mlx5_0", "mlx5_0 port 1 state", "ACTIVE"),
    ];
    assert_eq!(of_devices.collect::<Vec<_>>(), expected);
}

/// The answers of the kernel are files of this machine.
#[test]
fn what_netlink_tells_about_an_interface_is_a_fact() {
    let interface = "/sys/class/net/eth0";
    let mut machine = Machine::new(
        "netlink",
        &[
            (&format!("{interface}/speed"), "10000\n"),
            (&format!("{interface}/operstate"), "up\n"),
            ("/sys/devices/0000:3b:00.0/numa_node", "1\n"),
            ("/sys/devices/0000:3b:00.0/local_cpulist", "4-7\n"),
            ("/sys/devices/0000:3b:00.0/msi_irqs/40", "msix\n"),
            ("/sys/devices/0000:3b:00.0/msi_irqs/41", "msix\n"),
            ("/sys/devices/0000:3b:00.0/msi_irqs/42", "msix\n"),
            ("/proc/irq/40/effective_affinity_list", "0\n"),
            ("/proc/irq/41/effective_affinity_list", "1-2\n"),
            ("/proc/irq/42/effective_affinity_list", "\n"),
        ],
    );
    symlink("../../../devices/0000:3b:00.0", machine.files.path(&format!("{interface}/device"))).unwrap();
    assert!(!facts_in(&machine.files).contains_key("eth0 offloads"));
    // A driver that devlink does not know.
    let path = machine.files.path("/ethtool/eth0/drvinfo");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, driver_information::tests::answer("7.10")).unwrap();
    assert_eq!(machine.fact("eth0 firmware"), known("7.10"));
    for (name, bytes) in netlink::tests::answers() {
        let device = if name == "firmware" { "0000:3b:00.0" } else { "eth0" };
        let path = machine.files.path(&format!("/netlink/{device}/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    for (name, value) in [
        ("eth0 speed", "10 Gbit/s of 25 Gbit/s"),
        ("eth0 offloads", "rx-gro tx-checksum tx-tcp-segmentation"),
        ("eth0 pause", "rx"),
        ("eth0 firmware", "26.41.1"),
        ("eth0 interrupt CPUs", "0-2 instead of 4-7"),
    ] {
        assert_eq!(machine.fact(name), known(value), "{name}");
    }
    assert_eq!(netlink::pause_frames(&machine.files, "eth0"), [Some(3), Some(70)]);
    let near = machine.files.path("/proc/irq/42/effective_affinity_list");
    fs::write(near, "6\n").unwrap();
    assert_eq!(machine.fact("eth0 interrupt CPUs"), known("0-2,6"));
    machine.files.root.push("absent");
    assert_eq!(netlink::pause_frames(&machine.files, "eth0"), [None, None]);
}

#[test]
fn a_device_on_another_bus_is_attached_as_the_pci_device_above() {
    let slot = "/sys/devices/pci0000:00/0000:00:01.0";
    let card = format!("{slot}/0000:01:00.0");
    let texts = [
        (format!("{slot}/max_link_speed"), "8.0 GT/s PCIe\n"),
        (format!("{slot}/max_link_width"), "8\n"),
        (format!("{card}/current_link_speed"), "8.0 GT/s PCIe\n"),
        (format!("{card}/current_link_width"), "8\n"),
        (format!("{card}/max_link_speed"), "16.0 GT/s PCIe\n"),
        (format!("{card}/max_link_width"), "16\n"),
        (format!("{card}/numa_node"), "1\n"),
        (format!("{card}/local_cpulist"), "4-7\n"),
        (format!("{card}/virtio0/x"), ""),
        ("/sys/class/net/eth0/operstate".to_owned(), "up\n"),
        ("/sys/class/net/eth1/operstate".to_owned(), "up\n"),
    ];
    let texts = texts.each_ref().map(|(path, text)| (path.as_str(), *text));
    let machine = Machine::new("slot", &texts);
    let link = |target: &str, name: &str| symlink(target, machine.files.path(name)).unwrap();
    link("/sys/bus/pci", &format!("{card}/subsystem"));
    link("/sys/bus/virtio", &format!("{card}/virtio0/subsystem"));
    let from_interface = card.replace("/sys", "../../..");
    link(&from_interface, "/sys/class/net/eth0/device");
    link(&format!("{from_interface}/virtio0"), "/sys/class/net/eth1/device");
    let limited = "8.0 GT/s x8 of 16.0 GT/s x16 (port above 8.0 GT/s x8)";
    for device in ["eth0", "eth1"] {
        for (property, value) in [("PCIe", limited), ("NUMA node", "1"), ("local CPUs", "4-7")] {
            assert_eq!(machine.fact(&format!("{device} {property}")), known(value), "{device}");
        }
    }
    // Below a port that can more, the link itself is slow.
    fs::write(machine.files.path(&format!("{slot}/max_link_speed")), "32.0 GT/s PCIe\n").unwrap();
    fs::write(machine.files.path(&format!("{slot}/max_link_width")), "16\n").unwrap();
    assert_eq!(machine.fact("eth0 PCIe"), known("8.0 GT/s x8 of 16.0 GT/s x16"));
}

#[test]
fn bonds_and_vlans_above_hardware_are_described() {
    let machine = Machine::new(
        "bonds",
        &[
            ("/sys/class/net/bond0/flags", "0x1443\n"),
            ("/sys/class/net/bond0/bonding/slaves", "eth0 eth1\n"),
            ("/sys/class/net/bond0/speed", "50000\n"),
            ("/sys/class/net/bond0/mtu", "1500\n"),
            ("/sys/class/net/bond0.100/flags", "0x1003\n"),
            ("/sys/class/net/bond0.100/uevent", "DEVTYPE=vlan\nINTERFACE=bond0.100\n"),
            ("/sys/class/net/bond0.100/mtu", "9000\n"),
            ("/sys/class/net/bond1/flags", "0x1402\n"),
            ("/sys/class/net/bond1/bonding/slaves", "\n"),
            ("/sys/class/net/br0/flags", "0x1003\n"),
            ("/sys/class/net/br0/uevent", "DEVTYPE=bridge\nINTERFACE=br0\n"),
            ("/sys/class/net/eth0/speed", "25000\n"),
            ("/sys/class/net/eth0/device/x", ""),
            ("/sys/class/net/veth1/flags", "0x1003\n"),
        ],
    );
    let fact = machine.fact("network");
    let parts: Vec<&str> = fact.known().unwrap().split("; ").collect();
    assert_eq!(
        parts,
        [
            "bond0: bond of eth0 eth1, 50 Gbit/s, MTU 1500",
            "bond0.100: VLAN, MTU 9000",
            "eth0: model not reported, driver not reported, 25 Gbit/s",
        ]
    );
    assert_eq!(machine.fact("bond0 MTU"), known("1500"));
    assert_eq!(machine.fact("bond0 speed"), known("50 Gbit/s"));
    assert_eq!(network::interfaces(&machine.files), ["eth0"]);
}

#[test]
fn the_speed_of_an_interface_or_port_is_read_from_its_property() {
    for (speed, megabits) in [
        ("10 Gbit/s of 25 Gbit/s", Some(10_000)),
        ("2500 Mbit/s", Some(2500)),
        ("100 Gb/sec (4X EDR)", Some(100_000)),
        ("2.5 Gb/sec (1X SDR)", Some(2500)),
        ("10 parsec", None),
        ("fast", None),
        ("", None),
    ] {
        assert_eq!(network::megabits(speed), megabits, "{speed}");
    }
}

#[test]
fn without_hardware_the_interfaces_that_are_up_count() {
    let machine = Machine::new(
        "container",
        &[
            ("/sys/class/net/lo/flags", "0x9\n"),
            ("/sys/class/net/eth0/flags", "0x1003\n"),
            ("/sys/class/net/eth0/speed", "10000\n"),
            ("/sys/class/net/eth1/flags", "0x1002\n"),
        ],
    );
    assert_eq!(network::interfaces(&machine.files), ["eth0"]);
    assert_eq!(machine.fact("eth0 speed"), known("10 Gbit/s"));
}
