//! Findings about the accelerators of this host.

use ombx_accelerator::{Described, devices};
use ombx_core::benchmark::memory::Api;
use ombx_host::host;
use ombx_record::{
    result::{Mark, MarkCode},
    unit::counted,
};

use crate::doctor::report::Finding;

/// Returns the devices that this process sees; none without a driver.
pub(super) fn all() -> Vec<Described> {
    [Api::Cuda, Api::Rocm].into_iter().flat_map(|api| devices(api).unwrap_or_default()).collect()
}

/// Returns what would disturb measurements of buffers on devices; nothing on a host without a device.
pub(super) fn findings(devices: &[Described], ranks: u32) -> Vec<Finding> {
    let indirect = indirect(devices).filter(|_| host::has_rdma());
    of_devices(devices, ranks).into_iter().chain(indirect).map(Finding::of_mark).collect()
}

/// Returns what a device is, in a clause.
pub(super) fn sentence(device: &Described) -> String {
    let part = |name: &str, title: &str| known(device, name).map(|value| format!("{title}{value}"));
    let parts = [
        known(device, "accelerator").map(|name| format!("accelerator {name} at {}", device.bus)),
        part("accelerator_memory", ""),
        part("accelerator_ecc", "ECC "),
        part("accelerator_link", "PCI Express "),
        part("accelerator_nvlink", "NVLink "),
        part("accelerator_driver", "driver "),
        part("accelerator_gpudirect_rdma", "GPUDirect RDMA: "),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns a fact about a device.
fn known<'d>(device: &'d Described, name: &str) -> Option<&'d str> {
    device.facts.get(name).and_then(|fact| fact.known())
}

fn of_devices(devices: &[Described], ranks: u32) -> Vec<Mark> {
    let is_divided = |device: &&Described| known(device, "accelerator_mig") == Some("on");
    let no_ecc = |device: &&Described| known(device, "accelerator_ecc") == Some("off");
    let divided = devices.iter().find(is_divided).map(|device| {
        Mark::new(
            MarkCode::DividedDevice,
            format!("the accelerator {} is divided into instances (MIG)", device.bus),
            "instances have a part of its memory and copy engines and no access to each other",
        )
    });
    let no_ecc = devices.iter().find(no_ecc).map(|device| {
        Mark::new(
            MarkCode::NoEcc,
            format!("the memory of the accelerator {} has no error correction in use", device.bus),
            "figures differ from those of devices that use it",
        )
    });
    let count = devices.len();
    let shared = (count > 0 && ranks as usize > count).then(|| {
        Mark::new(
            MarkCode::SharedDevice,
            format!("{ranks} ranks on this host have {}", counted(count, "accelerator")),
            "with --memory their messages stay on the device, and it switches between the processes, \
             which takes longer than a message",
        )
    });
    let narrow = devices.iter().filter_map(narrow_link);
    narrow.chain(divided).chain(no_ecc).chain(shared).collect()
}

/// Returns the mark of the first device whose memory network adapters do not reach.
fn indirect(devices: &[Described]) -> Option<Mark> {
    let through_host = |device: &&Described| {
        known(device, "accelerator_gpudirect_rdma")
            .is_some_and(|fact| fact.contains("dma-buf no") && fact.contains("no module"))
    };
    devices.iter().find(through_host).map(|device| {
        Mark::new(
            MarkCode::NoGpudirectRdma,
            format!("network adapters cannot access the memory of the accelerator {}", device.bus),
            "messages between hosts pass through memory of the host",
        )
    })
}

/// Returns the mark of a device that uses fewer lanes than its link has.
fn narrow_link(device: &Described) -> Option<Mark> {
    let [used, widest] = device.links;
    let (used, widest) = used.zip(widest).filter(|(used, widest)| used.lanes < widest.lanes)?;
    Some(Mark::new(
        MarkCode::NarrowLink,
        format!(
            "the accelerator {} uses {} of {} lanes of PCI Express",
            device.bus, used.lanes, widest.lanes
        ),
        "copies between it and the host are slower than the device allows",
    ))
}

#[cfg(test)]
mod tests {
    use ombx_accelerator::Link;
    use ombx_record::fact::Fact;

    use super::*;

    #[test]
    fn narrow_links_and_shared_devices_are_found() {
        let device = |lanes: u32, facts: &[(&str, &str)]| Described {
            bus: "0000:17:00.0".into(),
            links: [lanes, 16].map(|lanes| Some(Link { generation: 5, lanes })),
            facts: facts.iter().map(|(name, value)| ((*name).into(), Fact::Known((*value).into()))).collect(),
        };
        let codes = |devices: &[Described], ranks| {
            of_devices(devices, ranks)
                .into_iter()
                .chain(indirect(devices))
                .map(|mark| mark.code.to_string())
                .collect::<Vec<_>>()
        };
        assert!(codes(&[], 2).is_empty());
        let unknown = Described { links: [None; 2], ..device(16, &[]) };
        assert!(codes(&[device(16, &[]), unknown], 2).is_empty());
        assert_eq!(codes(&[device(8, &[])], 2), ["narrow_link", "shared_device"]);
        let facts = [
            ("accelerator", "A"),
            ("accelerator_mig", "on"),
            ("accelerator_ecc", "off"),
            ("accelerator_gpudirect_rdma", "device yes, dma-buf no, no module nvidia_peermem"),
        ];
        let found = device(16, &facts);
        assert_eq!(sentence(&found).split(',').next(), Some("accelerator A at 0000:17:00.0"));
        assert_eq!(codes(&[found], 1), ["divided_device", "no_ecc", "no_gpudirect_rdma"]);
    }
}
