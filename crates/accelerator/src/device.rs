//! The device of this process, and its memory.

use std::{
    env,
    ffi::{c_int, c_void},
    fmt,
    sync::OnceLock,
};

use ombx_core::{
    benchmark::memory::{Api, Place},
    error::{Error, Kind, Result},
};

use crate::driver::{Address, Context, Driver, ToDevice, ToHost, library};

/// Variables in which launchers publish the number of a rank on its host.
pub const LOCAL_RANKS: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

/// The device that the user named.
static NAMED: OnceLock<u32> = OnceLock::new();

/// A device of this process. Its driver and its context exist until the process ends.
pub struct Device {
    pub(crate) driver: Driver,
    pub(crate) context: Context,
    /// Handle of the driver.
    pub(crate) handle: c_int,
    /// Number among the devices that the process sees.
    pub(crate) number: u32,
    /// Number of devices that the process sees.
    pub(crate) count: u32,
}

/// Names the device of this process. Called before [`device`]; a later call has no effect.
pub fn select(number: u32) {
    let _ = NAMED.set(number);
}

/// Returns the device of this process, which is chosen when it is used first.
///
/// # Errors
/// Usage error if there is no driver, no device, or none of the number that the user named.
pub fn device(api: Api) -> Result<&'static Device> {
    type Opened = OnceLock<std::result::Result<Device, (Kind, String)>>;
    static DEVICES: [Opened; 2] = [Opened::new(), Opened::new()];
    let opened =
        DEVICES[api as usize].get_or_init(|| Device::open(api).map_err(|e| (e.kind(), e.to_string())));
    opened.as_ref().map_err(|(kind, why)| Error::new(*kind, why.as_str()))
}

/// Returns the number of devices that this process sees. Uses none of them.
///
/// # Errors
/// Usage error if there is no driver or no device.
pub fn count(api: Api) -> Result<u32> {
    counted(&Driver::load(api)?)
}

pub(crate) fn counted(driver: &Driver) -> Result<u32> {
    let mut count = 0;
    // SAFETY: `count` outlives the call.
    driver.check("the number of devices", unsafe { (driver.device_count)(&raw mut count) })?;
    match u32::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => {
            let [_, name, devices] = library(driver.api);
            Err(Error::usage(format!(
                "{name} is installed, but this process sees no device on this host: look at {devices}"
            )))
        }
    }
}

/// Returns the number of a device: the named one, else that of the rank on its host, modulo the devices.
fn chosen(named: Option<u32>, local_rank: u32, count: u32) -> Result<u32> {
    match named {
        Some(number) if number >= count => Err(Error::usage(format!(
            "--device {number} is not a device: this host has devices 0 to {}",
            count - 1
        ))),
        Some(number) => Ok(number),
        None => Ok(local_rank % count),
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {} of {}", self.number, self.count)
    }
}

impl Device {
    fn open(api: Api) -> Result<Device> {
        let driver = Driver::load(api)?;
        let count = counted(&driver)?;
        let local_rank = LOCAL_RANKS.iter().find_map(|name| env::var(name).ok()?.parse().ok()).unwrap_or(0);
        let number = chosen(NAMED.get().copied(), local_rank, count)?;
        let mut handle = 0;
        // SAFETY: `handle` outlives the call, and the driver has a device of this number.
        driver.check("the device", unsafe { (driver.device)(&raw mut handle, number as c_int) })?;
        let context = driver.context(handle)?;
        driver.enter(context)?;
        Ok(Device { driver, context, handle, number, count })
    }

    /// Makes it the device of this thread.
    ///
    /// # Errors
    /// The device has failed.
    pub fn enter(&self) -> Result<()> {
        self.driver.enter(self.context)
    }

    /// Waits until the device has finished all work.
    ///
    /// # Errors
    /// The device has failed.
    pub fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the call has no arguments, and this thread has a device.
        self.driver.check("waiting for the device", unsafe { (self.driver.synchronize)() })
    }
}

/// Number of the host among the places to which managed memory is moved (`CU_DEVICE_CPU`, `hipCpuDeviceId`).
const HOST: c_int = -1;
/// Managed memory that every stream and device may access (`CU_MEM_ATTACH_GLOBAL`, `hipMemAttachGlobal`).
const ATTACH_GLOBAL: u32 = 1;

/// Memory on a device, freed when it is dropped.
#[derive(Debug)]
pub struct Allocation {
    device: &'static Device,
    address: Address,
    bytes: usize,
    /// Place to which managed memory is moved after it is written: the device or the host.
    home: Option<c_int>,
}

impl Allocation {
    /// Returns `bytes` bytes of device memory or managed memory, at least one, of any content.
    ///
    /// # Errors
    /// [`Error::unsupported`] if the device has too little memory.
    pub fn new(device: &'static Device, place: Place, bytes: usize) -> Result<Allocation> {
        device.enter()?;
        let (driver, bytes) = (&device.driver, bytes.max(1));
        let (mut free, mut total) = (0, 0);
        // SAFETY: both results outlive the call, and this thread has a device.
        let known = unsafe { (driver.memory_info)(&raw mut free, &raw mut total) } == 0;
        let mib = |bytes: usize| bytes >> 20;
        let home = match place {
            Place::Managed(_) => Some(device.handle),
            Place::ManagedOnHost(_) => Some(HOST),
            Place::Host | Place::Pinned(_) | Place::Device(_) => None,
        };
        let mut address = 0;
        // Managed memory beyond that of the device would move to and fro.
        if !(known && home.is_some() && bytes > free) {
            // SAFETY: `address` outlives the call, and this thread has a device.
            let code = unsafe {
                if home.is_some() {
                    (driver.allocate_managed)(&raw mut address, bytes, ATTACH_GLOBAL)
                } else {
                    (driver.allocate)(&raw mut address, bytes)
                }
            };
            if code == 0 {
                return Ok(Allocation { device, address, bytes, home });
            }
            if !known || bytes <= free {
                return Err(Error::unsupported(format!(
                    "{} MiB of memory on device {} could not be allocated: {}",
                    mib(bytes),
                    device.number,
                    driver.error(code)
                )));
            }
        }
        Err(Error::unsupported(format!(
            "needs a buffer of {} MiB on device {}, which has {} of {} MiB free",
            mib(bytes),
            device.number,
            mib(free),
            mib(total)
        )))
    }

    /// Makes its device that of this thread.
    ///
    /// # Errors
    /// The device has failed.
    pub fn enter(&self) -> Result<()> {
        self.device.enter()
    }

    /// Returns the address, which only the driver and libraries that know it may use.
    pub fn address(&self) -> *mut u8 {
        self.address as *mut u8
    }

    /// Copies bytes to the start, and returns when they are on the device.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// # Panics
    /// There are more bytes than memory.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() <= self.bytes, "a copy beyond the memory of a device");
        self.device.enter()?;
        let driver = &self.device.driver;
        // SAFETY: both sides have the bytes, and `&mut self` excludes other copies.
        let code = unsafe { (driver.to_device)(self.address, bytes.as_ptr().cast(), bytes.len()) };
        driver.check("copying to the device", code)?;
        if let Some(home) = self.home {
            // SAFETY: the memory is managed and belongs to `self`. A null stream is the default one.
            let code = unsafe { (driver.prefetch)(self.address, self.bytes, home, std::ptr::null_mut()) };
            driver.check("moving managed memory", code)?;
        }
        self.device.synchronize()
    }

    /// Copies bytes from the start, and returns when they are there.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// # Panics
    /// There are more bytes than memory.
    pub fn read(&self, bytes: &mut [u8]) -> Result<()> {
        assert!(bytes.len() <= self.bytes, "a copy beyond the memory of a device");
        self.device.synchronize()?;
        let driver = &self.device.driver;
        // SAFETY: both sides have the bytes.
        let code = unsafe { (driver.to_host)(bytes.as_mut_ptr().cast(), self.address, bytes.len()) };
        driver.check("copying from the device", code)
    }

    /// Returns copies between this memory and memory of the host, for timed regions.
    pub fn copies(&self) -> Copies {
        let driver = &self.device.driver;
        Copies { to_device: driver.to_device, to_host: driver.to_host, address: self.address }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: `self` owns the memory, and only `drop` frees it.
            unsafe { (self.device.driver.free)(self.address) };
        }
    }
}

/// Copies between the memory of a device and that of the host: one call of the driver each, on this thread's device.
#[derive(Debug, Clone, Copy)]
pub struct Copies {
    to_device: ToDevice,
    to_host: ToHost,
    address: Address,
}

impl Copies {
    /// Copies `bytes` bytes at an offset to the host. Returns the code of the driver, which is 0 for success.
    ///
    /// # Safety
    /// The allocation exists and has the bytes, and `to` is valid for them.
    #[inline(always)]
    pub unsafe fn to_host(&self, to: *mut c_void, offset: usize, bytes: usize) -> c_int {
        // SAFETY: the caller promises what the driver requires.
        unsafe { (self.to_host)(to, self.address + offset as Address, bytes) }
    }

    /// Copies `bytes` bytes of the host to an offset. Returns the code of the driver, which is 0 for success.
    ///
    /// # Safety
    /// The allocation exists and has the bytes, and `from` is valid for them.
    #[inline(always)]
    pub unsafe fn to_device(&self, offset: usize, from: *const c_void, bytes: usize) -> c_int {
        // SAFETY: the caller promises what the driver requires.
        unsafe { (self.to_device)(self.address + offset as Address, from, bytes) }
    }
}

/// Memory of the host that the driver has pinned, so that copies from and to it are direct and complete when they return.
#[derive(Debug)]
pub struct Pinned {
    device: &'static Device,
    start: *mut c_void,
}

impl Pinned {
    /// Pins memory until the result is dropped.
    ///
    /// # Errors
    /// [`Error::unsupported`] if the system does not let the driver pin so much memory.
    ///
    /// # Safety
    /// The memory exists, at this address, until the result is dropped.
    pub unsafe fn new(device: &'static Device, start: *mut u8, bytes: usize) -> Result<Pinned> {
        device.enter()?;
        let start = start.cast();
        // SAFETY: the caller promises that the memory exists. Flags of 0 are the default.
        let code = unsafe { (device.driver.register)(start, bytes, 0) };
        match code {
            0 => Ok(Pinned { device, start }),
            _ => Err(Error::unsupported(format!(
                "{} MiB of the host could not be pinned for copies: {}",
                bytes >> 20,
                device.driver.error(code)
            ))),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: `new` has registered this memory, which still exists.
            unsafe { (self.device.driver.unregister)(self.start) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_devices_in_turn() {
        let devices: Vec<u32> = (0..6).map(|rank| chosen(None, rank, 4).unwrap()).collect();
        assert_eq!(devices, [0, 1, 2, 3, 0, 1]);
        assert_eq!(chosen(Some(3), 0, 4).unwrap(), 3);
        assert!(chosen(Some(4), 0, 4).unwrap_err().to_string().contains("devices 0 to 3"));
    }
}
