//! Facts about the device of this process, for the provenance of results.

use std::{
    ffi::{CStr, c_char, c_int},
    fs,
};

use ombx_core::{
    benchmark::memory::Api,
    error::Result,
    fact::{Fact, Facts},
};

use crate::{Device, device::counted, driver::Driver};

/// Attributes of CUDA's driver interface (`CUdevice_attribute`): clock and memory clock in kHz, and ECC.
const CLOCK: i32 = 13;
const ECC: i32 = 32;
const MEMORY_CLOCK: i32 = 36;

/// The link of a device to its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLink {
    /// PCI address of the device.
    pub bus: String,
    /// Lanes in use, and lanes that device and slot have; `None` if sysfs does not say it.
    pub lanes: Option<(u32, u32)>,
}

/// Returns the links of all devices that this process sees. Uses none of them.
///
/// # Errors
/// Usage error if there is no driver or no device.
pub fn links(api: Api) -> Result<Vec<HostLink>> {
    let driver = Driver::load(api)?;
    let link = |number: u32| {
        let mut handle = 0;
        // SAFETY: `handle` outlives the call, and the driver has a device of this number.
        driver.check("the device", unsafe { (driver.device)(&raw mut handle, number as c_int) })?;
        let bus = text(driver.bus_id, handle).unwrap_or_default().to_lowercase();
        let lanes = |file| of_link(&bus, file)?.parse().ok();
        let lanes = lanes("current_link_width").zip(lanes("max_link_width"));
        Ok(HostLink { bus, lanes })
    };
    (0..counted(&driver)?).map(link).collect()
}

/// Returns the text of a file that sysfs has of a PCI device.
fn of_link(bus: &str, file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/bus/pci/devices/{bus}/{file}")).ok()?;
    Some(text.trim().to_owned())
}

/// Returns a text that a function of the driver writes about a device; `None` if it fails.
fn text(get: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int, device: c_int) -> Option<String> {
    let mut text = [0 as c_char; 128];
    // SAFETY: the driver writes at most the given length with a final zero, for which the last byte is kept.
    let code = unsafe { get(text.as_mut_ptr(), text.len() as c_int - 1, device) };
    // SAFETY: the last byte is zero.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    (code == 0).then(|| text.to_string_lossy().into_owned())
}

impl Device {
    /// Returns facts about the device, its driver and its link to the host.
    pub fn facts(&self) -> Facts {
        let bus = self.bus_id();
        let link = |speed: &str, width: &str| {
            let bus = bus.as_deref()?;
            Some(format!("{} x{}", of_link(bus, speed)?, of_link(bus, width)?))
        };
        let of_cuda = |attribute| if self.driver.api == Api::Cuda { self.attribute(attribute) } else { None };
        let mhz =
            |attribute| of_cuda(attribute).filter(|khz| *khz > 0).map(|khz| format!("{} MHz", khz / 1000));
        let ecc = of_cuda(ECC).map(|ecc| if ecc == 0 { "off" } else { "on" });
        let silent = "the driver does not say it";
        let facts = [
            ("accelerator", text(self.driver.device_name, self.handle), silent),
            ("accelerator_number", Some(format!("{} of {}", self.number, self.count)), silent),
            ("accelerator_bus", bus.clone(), silent),
            ("accelerator_memory", self.total_mib().map(|mib| format!("{mib} MiB")), silent),
            ("accelerator_ecc", ecc.map(str::to_owned), silent),
            ("accelerator_clock", mhz(CLOCK), silent),
            ("accelerator_memory_clock", mhz(MEMORY_CLOCK), silent),
            ("accelerator_interface", self.interface(), silent),
            ("accelerator_driver", driver_version(self.driver.api), "no version in /sys/module"),
            (
                "accelerator_link",
                link("current_link_speed", "current_link_width"),
                "sysfs has no such PCI device",
            ),
            (
                "accelerator_widest_link",
                link("max_link_speed", "max_link_width"),
                "sysfs has no such PCI device",
            ),
        ];
        facts.into_iter().map(|(name, value, why)| (name.to_owned(), Fact::of(value, why))).collect()
    }

    /// Returns the PCI address of the device as sysfs writes it, which is the same for all ranks of a host.
    pub fn bus_id(&self) -> Option<String> {
        text(self.driver.bus_id, self.handle).map(|bus| bus.to_lowercase())
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
