//! Facts about the device of this process, for the provenance of results.

use std::fs;

use ombx_core::{
    benchmark::memory::Api,
    fact::{Fact, Facts},
};

use crate::Device;

/// Attributes of CUDA's driver interface (`CUdevice_attribute`): clock and memory clock in kHz, and ECC.
const CLOCK: i32 = 13;
const ECC: i32 = 32;
const MEMORY_CLOCK: i32 = 36;

impl Device {
    /// Returns facts about the device, its driver and its link to the host.
    pub fn facts(&self) -> Facts {
        let bus = self.bus_id();
        let of_link = |file: &str| {
            let text = fs::read_to_string(format!("/sys/bus/pci/devices/{}/{file}", bus.as_deref()?)).ok()?;
            Some(text.trim().to_owned())
        };
        let link = |speed: &str, width: &str| Some(format!("{} x{}", of_link(speed)?, of_link(width)?));
        let of_cuda = |attribute| if self.driver.api == Api::Cuda { self.attribute(attribute) } else { None };
        let mhz = |attribute| of_cuda(attribute).filter(|khz| *khz > 0).map(|khz| format!("{} MHz", khz / 1000));
        let ecc = of_cuda(ECC).map(|ecc| if ecc == 0 { "off" } else { "on" });
        let silent = "the driver does not say it";
        let facts = [
            ("accelerator", self.text(self.driver.device_name), silent),
            ("accelerator_number", Some(format!("{} of {}", self.number, self.count)), silent),
            ("accelerator_bus", bus.clone(), silent),
            ("accelerator_memory", self.total_mib().map(|mib| format!("{mib} MiB")), silent),
            ("accelerator_ecc", ecc.map(str::to_owned), silent),
            ("accelerator_clock", mhz(CLOCK), silent),
            ("accelerator_memory_clock", mhz(MEMORY_CLOCK), silent),
            ("accelerator_interface", self.interface(), silent),
            ("accelerator_driver", driver_version(self.driver.api), "no version in /sys/module"),
            ("accelerator_link", link("current_link_speed", "current_link_width"), "sysfs has no such PCI device"),
            ("accelerator_widest_link", link("max_link_speed", "max_link_width"), "sysfs has no such PCI device"),
        ];
        facts.into_iter().map(|(name, value, why)| (name.to_owned(), Fact::of(value, why))).collect()
    }

    /// Returns the PCI address of the device as sysfs writes it, which is the same for all ranks of a host.
    pub fn bus_id(&self) -> Option<String> {
        self.text(self.driver.bus_id).map(|bus| bus.to_lowercase())
    }

    fn attribute(&self, attribute: i32) -> Option<i32> {
        let mut value = 0;
        // SAFETY: `value` outlives the call, and the handle is of the driver, which refuses attributes that it does not know.
        (unsafe { (self.driver.attribute)(&raw mut value, attribute, self.handle) } == 0).then_some(value)
    }

    fn total_mib(&self) -> Option<usize> {
        let mut bytes = 0;
        // SAFETY: `bytes` outlives the call, and the handle is of the driver.
        (unsafe { (self.driver.total_memory)(&raw mut bytes, self.handle) } == 0).then_some(bytes >> 20)
    }

    /// Returns the version of the interface that the driver has.
    fn interface(&self) -> Option<String> {
        let mut version = 0;
        // SAFETY: `version` outlives the call.
        let known = unsafe { (self.driver.version)(&raw mut version) } == 0;
        known.then(|| match self.driver.api {
            Api::Cuda => format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
            Api::Rocm => format!("HIP {version}"),
        })
    }
}

fn driver_version(api: Api) -> Option<String> {
    let module = match api {
        Api::Cuda => "nvidia",
        Api::Rocm => "amdgpu",
    };
    Some(fs::read_to_string(format!("/sys/module/{module}/version")).ok()?.trim().to_owned())
}
