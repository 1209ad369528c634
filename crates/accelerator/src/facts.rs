//! Facts about devices, for the provenance of results and for `ombx doctor`.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    fmt, fs,
    path::Path,
};

use libloading::Library;
use ombx_core::{
    benchmark::memory::Api,
    error::Result,
    fact::{Fact, Facts},
};

use crate::{Device, device::counted, driver::Driver};

/// Attributes of CUDA's driver interface (`CUdevice_attribute`): clock and memory clock in kHz, ECC, GPUDirect RDMA, export as dma-buf.
const CLOCK: i32 = 13;
const ECC: i32 = 32;
const MEMORY_CLOCK: i32 = 36;
const DIRECT_RDMA: i32 = 116;
const DMA_BUF: i32 = 124;

/// Kernel modules that let network adapters access the memory of NVIDIA devices.
const PEER_MEMORY: [&str; 2] = ["nvidia_peermem", "nv_peer_mem"];

/// Generation and number of lanes of PCI Express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Generation, such as 5.
    pub generation: u32,
    /// Lanes, such as 16.
    pub lanes: u32,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation {} x{}", self.generation, self.lanes)
    }
}

/// A device that this process sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// PCI address.
    pub bus: String,
    /// Link to the host that is in use, and the widest that device and slot have; `None` if nothing says it.
    pub links: [Option<Link>; 2],
    /// What the driver, its management library and sysfs say.
    pub facts: Facts,
}

/// Returns all devices that this process sees. Uses none of them.
///
/// # Errors
/// Usage error if there is no driver or no device.
pub fn devices(api: Api) -> Result<Vec<Described>> {
    let driver = Driver::load(api)?;
    let count = counted(&driver)?;
    (0..count).map(|number| One::new(&driver, number, count).map(|one| one.described())).collect()
}

impl Device {
    /// Returns facts about the device, its driver and its links.
    pub fn facts(&self) -> Facts {
        self.one().described().facts
    }

    /// Returns the PCI address of the device as sysfs writes it, which is the same for all ranks of a host.
    pub fn bus_id(&self) -> Option<String> {
        self.one().bus()
    }

    fn one(&self) -> One<'_> {
        One { driver: &self.driver, handle: self.handle, number: self.number, count: self.count }
    }
}

/// A device of a driver.
struct One<'d> {
    driver: &'d Driver,
    handle: c_int,
    /// Number among the devices that the process sees, and their number.
    number: u32,
    count: u32,
}

impl<'d> One<'d> {
    /// Returns device `number` of the `count` devices of a driver.
    fn new(driver: &'d Driver, number: u32, count: u32) -> Result<One<'d>> {
        let mut handle = 0;
        // SAFETY: `handle` outlives the call, and the driver has a device of this number.
        driver.check("the device", unsafe { (driver.device)(&raw mut handle, number as c_int) })?;
        Ok(One { driver, handle, number, count })
    }

    fn described(&self) -> Described {
        let bus = self.bus().unwrap_or_default();
        let managed = Some(self.driver.api).filter(|api| *api == Api::Cuda).and_then(|_| Managed::at(&bus));
        let links = [("Curr", "current"), ("Max", "max")].map(|(of_driver, of_system)| {
            managed.and_then(|managed| managed.link(of_driver)).or_else(|| link_of(&bus, of_system))
        });
        let mut facts = Facts::new();
        let mut add = |name: &str, value: Option<String>, why: &str| {
            facts.insert(name.to_owned(), Fact::new(value, why));
        };
        let silent = "the driver does not say it";
        let unmanaged = match self.driver.api {
            Api::Cuda => "libnvidia-ml.so.1 does not say it",
            Api::Rocm => "ROCm's driver does not say it",
        };
        let on = |is: bool| if is { "on" } else { "off" }.to_owned();
        let mhz = |attribute| {
            self.of_cuda(attribute).filter(|khz| *khz > 0).map(|khz| format!("{} MHz", khz / 1000))
        };
        let ecc = managed.as_ref().and_then(Managed::has_ecc).or(self.of_cuda(ECC).map(|ecc| ecc != 0));
        add("accelerator", text(self.driver.device_name, self.handle), silent);
        add("accelerator_number", Some(format!("{} of {}", self.number, self.count)), silent);
        add("accelerator_bus", Some(bus.clone()).filter(|bus| !bus.is_empty()), silent);
        add("accelerator_memory", self.total_mib().map(|mib| format!("{mib} MiB")), silent);
        add("accelerator_ecc", ecc.map(on), silent);
        add("accelerator_clock", mhz(CLOCK), silent);
        add("accelerator_memory_clock", mhz(MEMORY_CLOCK), silent);
        add(
            "accelerator_current_clocks",
            managed.as_ref().and_then(clocks).or_else(|| active_clock(&bus)),
            unmanaged,
        );
        add("accelerator_interface", self.interface(), silent);
        let driver = managed.as_ref().and_then(Managed::driver).or_else(|| module_version(self.driver.api));
        add("accelerator_driver", driver, "no version in /sys/module");
        for (name, link) in ["accelerator_link", "accelerator_widest_link"].into_iter().zip(links) {
            add(name, link.map(|link| link.to_string()), "neither the driver nor sysfs says it");
        }
        add("accelerator_mig", managed.as_ref().and_then(Managed::is_divided).map(on), unmanaged);
        add("accelerator_nvlink", managed.as_ref().map(|managed| grouped(managed.nvlink_peers())), unmanaged);
        add("accelerator_peer_access", self.peer_access(), silent);
        add("accelerator_gpudirect_rdma", self.direct_rdma(), silent);
        Described { bus, links, facts }
    }

    fn bus(&self) -> Option<String> {
        text(self.driver.bus_id, self.handle).map(|bus| bus.to_lowercase())
    }

    fn of_cuda(&self, attribute: i32) -> Option<i32> {
        let mut value = 0;
        if self.driver.api != Api::Cuda {
            return None;
        }
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

    /// Returns which of the other devices of this process the device can access directly.
    fn peer_access(&self) -> Option<String> {
        let others = (0..self.count).filter(|number| *number != self.number);
        let mut reached = Vec::new();
        for number in others {
            let (mut other, mut can) = (0, 0);
            // SAFETY: both results outlive the calls, and the driver has a device of this number.
            let code = unsafe {
                match (self.driver.device)(&raw mut other, number as c_int) {
                    0 => (self.driver.can_access_peer)(&raw mut can, self.handle, other),
                    code => code,
                }
            };
            if code != 0 {
                return None;
            }
            reached.extend((can != 0).then(|| number.to_string()));
        }
        Some(match (self.count, reached.is_empty()) {
            (1, _) => "no other device is seen".to_owned(),
            (_, true) => format!("to none of {} other devices", self.count - 1),
            (_, false) => {
                format!("to {} of {} other devices: {}", reached.len(), self.count - 1, reached.join(", "))
            }
        })
    }

    /// Returns whether network adapters can access the memory: what the device has, and the kernel modules that are loaded.
    fn direct_rdma(&self) -> Option<String> {
        if self.driver.api == Api::Rocm {
            return None;
        }
        let yes = |attribute| self.of_cuda(attribute).map(|has| if has == 0 { "no" } else { "yes" });
        let module = peer_memory_module().unwrap_or("no module nvidia_peermem");
        Some(format!("device {}, dma-buf {}, {module}", yes(DIRECT_RDMA)?, yes(DMA_BUF).unwrap_or("unknown")))
    }
}

/// Returns the loaded kernel module that lets network adapters access the memory of NVIDIA devices.
fn peer_memory_module() -> Option<&'static str> {
    PEER_MEMORY.into_iter().find(|module| Path::new("/sys/module").join(module).exists())
}

fn clocks(managed: &Managed) -> Option<String> {
    let processors = managed.clock(PROCESSORS)?;
    Some(format!("processors {processors} MHz, memory {} MHz", managed.clock(MEMORY)?))
}

/// Returns the active line of the list of frequencies that the driver of AMD devices has in sysfs.
fn active_clock(bus: &str) -> Option<String> {
    let list = of_sysfs(bus, "pp_dpm_sclk")?;
    let active = list.lines().find_map(|line| line.trim().strip_suffix('*'))?;
    Some(format!("processors {}", active.split_once(": ")?.1.trim()))
}

/// Returns addresses with the number of links to each.
fn grouped(peers: Vec<String>) -> String {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for peer in peers {
        *counts.entry(peer).or_default() += 1;
    }
    let each: Vec<String> = counts.into_iter().map(|(peer, links)| format!("{links} to {peer}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

/// Returns the text of a file that sysfs has of a PCI device.
fn of_sysfs(bus: &str, file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/bus/pci/devices/{bus}/{file}")).ok()?;
    Some(text.trim().to_owned())
}

/// Returns a link from the speed of a lane and the width that sysfs has.
fn link_of(bus: &str, which: &str) -> Option<Link> {
    let speed = of_sysfs(bus, &format!("{which}_link_speed"))?;
    let lanes = of_sysfs(bus, &format!("{which}_link_width"))?.parse().ok()?;
    Some(Link { generation: generation_of(&speed)?, lanes })
}

/// Returns the generation of a speed such as `32.0 GT/s PCIe`.
fn generation_of(speed: &str) -> Option<u32> {
    let speeds = ["2.5", "5.0", "8.0", "16.0", "32.0", "64.0"];
    let number = speed.split_whitespace().next()?;
    (1..).zip(speeds).find_map(|(generation, known)| (known == number).then_some(generation))
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

fn module_version(api: Api) -> Option<String> {
    let module = match api {
        Api::Cuda => "nvidia",
        Api::Rocm => "amdgpu",
    };
    Some(fs::read_to_string(format!("/sys/module/{module}/version")).ok()?.trim().to_owned())
}

const LIBRARY: &str = "libnvidia-ml.so.1";
/// Clocks of `nvmlDeviceGetClockInfo`: of the processors and of the memory.
pub(crate) const PROCESSORS: c_uint = 1;
pub(crate) const MEMORY: c_uint = 2;
/// Largest number of links of a device.
const MOST_LINKS: c_uint = 36;

/// A device of the management library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Managed {
    library: &'static Library,
    device: *mut c_void,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciInfo {
    legacy: [c_char; 16],
    numbers: [c_uint; 5],
    bus: [c_char; 32],
}

type Get = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
type GetKind = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_uint) -> c_int;
type GetPair = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut c_uint) -> c_int;

impl Managed {
    /// Returns the device at a PCI address; `None` without the library.
    pub(crate) fn at(bus: &str) -> Option<Managed> {
        let bus = CString::new(bus).ok()?;
        let mut device = std::ptr::null_mut();
        // SAFETY: the initialisers of the library have no preconditions. The functions have the declarations of nvml.h of CUDA 12.
        let (library, code) = unsafe {
            let library: &'static Library = Box::leak(Box::new(Library::new(LIBRARY).ok()?));
            let init = library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2").ok()?;
            let find = library
                .get::<unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int>(
                    b"nvmlDeviceGetHandleByPciBusId_v2",
                )
                .ok()?;
            let code = init();
            (library, if code == 0 { find(bus.as_ptr(), &raw mut device) } else { code })
        };
        (code == 0).then_some(Managed { library, device })
    }

    fn number(&self, name: &str) -> Option<u32> {
        let mut value = 0;
        // SAFETY: functions of this form store a number, which outlives the call, and refuse what the device does not have.
        let code = unsafe { (self.library.get::<Get>(name.as_bytes()).ok()?)(self.device, &raw mut value) };
        (code == 0).then_some(value)
    }

    fn of_kind(&self, name: &str, kind: c_uint) -> Option<u32> {
        let mut value = 0;
        // SAFETY: as in `number`.
        let code = unsafe {
            (self.library.get::<GetKind>(name.as_bytes()).ok()?)(self.device, kind, &raw mut value)
        };
        (code == 0).then_some(value)
    }

    /// Returns the first of two numbers: what is so now, not after the next start.
    fn current(&self, name: &str) -> Option<u32> {
        let (mut now, mut later) = (0, 0);
        // SAFETY: as in `number`.
        let code = unsafe {
            (self.library.get::<GetPair>(name.as_bytes()).ok()?)(self.device, &raw mut now, &raw mut later)
        };
        (code == 0).then_some(now)
    }

    /// Returns the version of the driver.
    pub(crate) fn driver(&self) -> Option<String> {
        let mut text = [0 as c_char; 96];
        // SAFETY: the library writes at most the given length with a final zero, for which the last byte is kept.
        let code = unsafe {
            let get = self
                .library
                .get::<unsafe extern "C" fn(*mut c_char, c_uint) -> c_int>(b"nvmlSystemGetDriverVersion");
            (get.ok()?)(text.as_mut_ptr(), text.len() as c_uint - 1)
        };
        (code == 0).then(|| text_of(&text))
    }

    /// Returns generation and lanes of PCI Express: those in use for `Curr`, those that device and slot have for `Max`.
    fn link(&self, which: &str) -> Option<Link> {
        let lanes = self.number(&format!("nvmlDeviceGet{which}PcieLinkWidth"))?;
        Some(Link { generation: self.number(&format!("nvmlDeviceGet{which}PcieLinkGeneration"))?, lanes })
    }

    /// Returns the frequency of a clock in MHz.
    pub(crate) fn clock(&self, which: c_uint) -> Option<u32> {
        self.of_kind("nvmlDeviceGetClockInfo", which)
    }

    /// Returns whether memory has an error correction.
    pub(crate) fn has_ecc(&self) -> Option<bool> {
        self.current("nvmlDeviceGetEccMode").map(|mode| mode == 1)
    }

    /// Returns whether the device is divided into instances (MIG).
    pub(crate) fn is_divided(&self) -> Option<bool> {
        self.current("nvmlDeviceGetMigMode").map(|mode| mode == 1)
    }

    /// Returns the PCI addresses at the other ends of the active NVLinks.
    pub(crate) fn nvlink_peers(&self) -> Vec<String> {
        let is_active = |link: &c_uint| self.of_kind("nvmlDeviceGetNvLinkState", *link) == Some(1);
        (0..MOST_LINKS).filter(is_active).filter_map(|link| self.nvlink_peer(link)).collect()
    }

    fn nvlink_peer(&self, link: c_uint) -> Option<String> {
        let mut pci = PciInfo { legacy: [0; 16], numbers: [0; 5], bus: [0; 32] };
        // SAFETY: the library fills the structure, which outlives the call.
        let code = unsafe {
            let get = self.library.get::<unsafe extern "C" fn(*mut c_void, c_uint, *mut PciInfo) -> c_int>(
                b"nvmlDeviceGetNvLinkRemotePciInfo_v2",
            );
            (get.ok()?)(self.device, link, &raw mut pci)
        };
        pci.bus[31] = 0;
        (code == 0).then(|| sysfs_address(&text_of(&pci.bus)))
    }
}

/// Returns a PCI address as sysfs writes it: with a domain of four digits where eight begin with zeros.
fn sysfs_address(address: &str) -> String {
    let address = address.to_lowercase();
    let (domain, rest) = address.split_once(':').unwrap_or(("", &address));
    match domain.strip_prefix("0000") {
        Some(domain) if domain.len() == 4 => format!("{domain}:{rest}"),
        _ => address,
    }
}

/// Returns the text before the first zero of an array that ends with one.
fn text_of(text: &[c_char]) -> String {
    // SAFETY: the last element is zero.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_generations_and_peers_are_counted() {
        assert_eq!(generation_of("32.0 GT/s PCIe"), Some(5));
        assert_eq!(generation_of("Unknown"), None);
        let peers = ["0000:02:00.0", "0000:01:00.0", "0000:02:00.0"].map(str::to_owned).to_vec();
        assert_eq!(grouped(peers), "1 to 0000:01:00.0, 2 to 0000:02:00.0");
        assert_eq!(grouped(Vec::new()), "none");
    }
}

#[cfg(test)]
mod nvml_tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_sysfs() {
        assert_eq!(sysfs_address("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(sysfs_address("00010000:02:00.0"), "00010000:02:00.0");
        assert_eq!(sysfs_address("0000:02:00.0"), "0000:02:00.0");
    }
}
