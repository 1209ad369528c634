//! Facts about NVIDIA devices from the management library of the driver, which is loaded when it is asked and may be missing.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use libloading::Library;

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

    /// Returns generation and lanes of PCI Express that are in use.
    pub(crate) fn link(&self) -> Option<(u32, u32)> {
        let lanes = self.number("nvmlDeviceGetCurrPcieLinkWidth")?;
        Some((self.number("nvmlDeviceGetCurrPcieLinkGeneration")?, lanes))
    }

    /// Returns generation and lanes of PCI Express that device and slot have.
    pub(crate) fn widest_link(&self) -> Option<(u32, u32)> {
        let lanes = self.number("nvmlDeviceGetMaxPcieLinkWidth")?;
        Some((self.number("nvmlDeviceGetMaxPcieLinkGeneration")?, lanes))
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
    fn addresses_are_those_of_sysfs() {
        assert_eq!(sysfs_address("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(sysfs_address("00010000:02:00.0"), "00010000:02:00.0");
        assert_eq!(sysfs_address("0000:02:00.0"), "0000:02:00.0");
    }
}
