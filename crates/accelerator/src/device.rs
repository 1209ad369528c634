//! The device of this process.

use std::{env, ffi::c_int, fmt, sync::OnceLock};

use ombx_core::{
    benchmark::memory::Api,
    error::{Error, Kind, Result},
};

use crate::driver::{Context, Driver};

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
        _ => Err(Error::usage(format!(
            "{}: the driver is installed, but this process sees no device on this host: look at {}",
            driver.option(),
            match driver.api {
                Api::Cuda => "nvidia-smi and CUDA_VISIBLE_DEVICES",
                Api::Rocm => "rocm-smi and ROCR_VISIBLE_DEVICES",
            }
        ))),
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
