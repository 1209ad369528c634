//! Findings about the accelerators of this host.

use ombx_accelerator::{HostLink, links};
use ombx_core::{benchmark::memory::Api, result::Mark};

use super::finding::Finding;

/// Returns what would disturb measurements of buffers on devices; nothing on a host without a device.
pub(super) fn findings(ranks: u32) -> Vec<Finding> {
    let of_driver = |api| of_devices(&links(api).unwrap_or_default(), ranks);
    [Api::Cuda, Api::Rocm].into_iter().flat_map(of_driver).map(Finding::of_mark).collect()
}

fn of_devices(links: &[HostLink], ranks: u32) -> Vec<Mark> {
    let narrow = |link: &HostLink| {
        let (lanes, most) = link.lanes.filter(|(lanes, most)| lanes < most)?;
        Some(Mark::caution(
            "narrow_link",
            format!("the accelerator {} uses {lanes} of {most} lanes of PCI Express", link.bus),
            "copies between it and the host are slower than the device allows: look at its slot and riser",
        ))
    };
    let devices = links.len();
    let shared = (devices > 0 && ranks as usize > devices).then(|| {
        Mark::note(
            "shared_device",
            format!("{ranks} ranks on this host have {devices} accelerator{}", if devices == 1 { "" } else { "s" }),
            "with --memory their messages stay on the device, and it switches between the processes, which takes longer than a message: start as many ranks as devices, or the ranks under NVIDIA's Multi-Process Service",
        )
    });
    links.iter().filter_map(narrow).chain(shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_links_and_shared_devices_are_found() {
        let link = |lanes| HostLink { bus: "0000:17:00.0".into(), lanes };
        let codes = |links: &[HostLink], ranks| {
            of_devices(links, ranks).into_iter().map(|mark| mark.code).collect::<Vec<_>>()
        };
        assert!(codes(&[], 2).is_empty());
        assert!(codes(&[link(Some((16, 16))), link(None)], 2).is_empty());
        assert_eq!(codes(&[link(Some((8, 16)))], 2), ["narrow_link", "shared_device"]);
    }
}
