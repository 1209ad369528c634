//! Buffers in the memory of an accelerator. Kernels fill and check a copy of each in the memory of the host.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicBool, Ordering},
};

use ombx_accelerator::{Allocation, Copies, device};
use ombx_core::{
    benchmark::{
        Context,
        memory::{self, BufferMemory, Place, Staged},
    },
    error::Result,
};

use crate::runtime::device_support;

/// The buffers of this process that are on a device.
static BUFFERS: Mutex<Vec<Weak<OnDevice>>> = Mutex::new(Vec::new());

fn buffers() -> MutexGuard<'static, Vec<Weak<OnDevice>>> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns where MPI finds the buffers of this rank in a case.
///
/// # Errors
/// The MPI library takes no memory of such devices, or the case cannot have its buffers there.
pub(crate) fn place(cx: &Context<'_>) -> Result<Place> {
    let memory: BufferMemory = cx.get();
    let on_devices = !memory.places().into_iter().all(Place::is_of_host);
    if on_devices {
        memory::only_warm(cx, "buffers on a device, which are in no cache of the CPU")?;
    }
    match (memory.api(), cx.get()) {
        (None, _) | (_, Staged::On) => Ok(Place::Host),
        (Some(api), Staged::Off) => {
            // A rank with memory of the host communicates with one that has not.
            if on_devices {
                device_support::check(api)?;
            }
            Ok(memory.place(cx.role))
        }
    }
}

/// A buffer on a device, and its copy in the memory of the host.
#[derive(Debug)]
pub(crate) struct OnDevice {
    allocation: Mutex<Allocation>,
    copy: *mut u8,
    bytes: usize,
    /// Whether the copy was changed since it was written to the device.
    changed: AtomicBool,
}

// SAFETY: the copy is used by `write_all` and `read_all` only while no kernel has a reference to it, and its buffer outlives this.
unsafe impl Send for OnDevice {}
// SAFETY: as above.
unsafe impl Sync for OnDevice {}

impl OnDevice {
    /// Allocates the memory of a buffer whose copy is at `copy`.
    ///
    /// # Errors
    /// There is no device, or it has too little memory.
    pub(crate) fn new(place: Place, copy: *mut u8, bytes: usize) -> Result<Option<Arc<OnDevice>>> {
        let Some(api) = place.api().filter(|_| !place.is_of_host()) else { return Ok(None) };
        let allocation = Mutex::new(Allocation::new(device(api)?, place, bytes)?);
        let buffer = Arc::new(OnDevice { allocation, copy, bytes, changed: AtomicBool::new(true) });
        let mut all = buffers();
        all.retain(|buffer| buffer.strong_count() > 0);
        all.push(Arc::downgrade(&buffer));
        Ok(Some(buffer))
    }

    fn allocation(&self) -> MutexGuard<'_, Allocation> {
        self.allocation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address on the device.
    pub(crate) fn address(&self) -> *mut u8 {
        self.allocation().address()
    }

    /// Returns copies for timed regions.
    pub(crate) fn copies(&self) -> Copies {
        self.allocation().copies()
    }

    /// Notes that a kernel may change the copy, and makes the device that of the kernel's thread. Errors are those of the next copy.
    pub(crate) fn changes(&self) {
        let _ = self.allocation().enter();
        self.changed.store(true, Ordering::Relaxed);
    }

    fn write(&self) -> Result<()> {
        if !self.changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        // SAFETY: the buffer has these bytes, and no kernel has a reference to them meanwhile.
        self.allocation().write(unsafe { std::slice::from_raw_parts(self.copy, self.bytes) })
    }

    fn read(&self) -> Result<()> {
        // SAFETY: as in `write`.
        self.allocation().read(unsafe { std::slice::from_raw_parts_mut(self.copy, self.bytes) })
    }
}

fn each(visit: impl FnMut(Arc<OnDevice>) -> Result<()>) -> Result<()> {
    let all: Vec<_> = buffers().iter().filter_map(Weak::upgrade).collect();
    all.into_iter().try_for_each(visit)
}

/// Writes what kernels have changed to the devices, and waits until it is there.
pub(crate) fn write_all() -> Result<()> {
    each(|buffer| buffer.write())
}

/// Reads every buffer from its device.
pub(crate) fn read_all() -> Result<()> {
    each(|buffer| buffer.read())
}
