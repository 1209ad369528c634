//! Virtual machines and containers, as far as the kernel and files of container engines show them.

use std::env;

use crate::{fact::Fact, system::machine::Files};

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

pub(super) fn virtual_machine(files: &Files) -> Fact {
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

pub(super) fn container(files: &Files) -> Fact {
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
