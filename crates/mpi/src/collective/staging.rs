//! Copies of a collective operation through memory of the host, as programs make them whose MPI takes no memory of devices.

use std::ffi::c_void;

use ombx_accelerator::{Copies, Pinned, device};
use ombx_core::{
    benchmark::{Context, memory::BufferMemory},
    error::{Error, Result},
};

use crate::{Buffer, two_sided::staged::copied};

/// A buffer on a device, and the one of the host that MPI uses.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) buffer: Buffer,
    copies: Copies,
    host: *mut c_void,
    bytes: usize,
    _pinned: Option<Pinned>,
}

impl Staging {
    /// Allocates the buffer on the device, and pins that of the host. No bytes are copied for an empty buffer.
    ///
    /// # Errors
    /// The device has too little memory.
    ///
    /// # Safety
    /// The buffer of the host exists until the result is dropped.
    pub(super) unsafe fn open(cx: &Context<'_>, host: &mut Buffer, bytes: u64) -> Result<Staging> {
        let place = cx.get::<BufferMemory>().place(cx.role);
        let host = host.bytes_mut();
        let buffer = Buffer::reserved(host.len() as u64)?.on(place)?;
        let refused = || Error::unsupported("--staged needs the memory of a device");
        let (there, api) = buffer.on_device().zip(place.api()).ok_or_else(refused)?;
        let (copies, start, bytes) = (there.copies(), host.as_mut_ptr(), bytes as usize);
        let pinned = match bytes {
            0 => None,
            // SAFETY: the caller promises that the memory exists.
            _ => Some(unsafe { Pinned::new(device(api)?, start, host.len()) }?),
        };
        Ok(Staging { buffer, copies, host: start.cast(), bytes, _pinned: pinned })
    }

    #[inline(always)]
    pub(super) fn to_host(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: both buffers have the bytes and exist as long as `self`.
        copied(unsafe { self.copies.to_host(self.host, 0, self.bytes) })
    }

    #[inline(always)]
    pub(super) fn to_device(&self) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        copied(unsafe { self.copies.to_device(0, self.host, self.bytes) })
    }
}
