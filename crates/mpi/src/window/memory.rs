//! Memory that a window exposes and that its library does not free with the window.

use std::{ffi::c_void, ptr};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, memory::BufferMemory},
    error::{Error, Result},
};

use super::options::{Hints, WindowKind};
use crate::{Buffer, sys::error::check};

/// Memory for a window. It is freed after the window.
pub(super) enum Memory {
    /// Memory that ombx maps.
    Mapped(Buffer),
    /// Memory of `MPI_Alloc_mem`.
    Allocated(Allocated),
}

impl Memory {
    /// Returns the memory for a kind of window; `None` if the call that creates the window allocates it.
    ///
    /// # Errors
    /// The memory is not available.
    pub(super) fn of(cx: &Context<'_>, kind: WindowKind, bytes: u64, hints: Hints) -> Result<Option<Memory>> {
        let is_own = matches!(kind, WindowKind::Create | WindowKind::Dynamic);
        if !is_own && !cx.get::<BufferMemory>().is_host() {
            return Err(Error::unsupported(
                "MPI allocates the memory of this window itself, on the host: choose --win create or --win dynamic",
            ));
        }
        Ok(match kind {
            WindowKind::Allocate | WindowKind::Shared => None,
            WindowKind::Create | WindowKind::Dynamic => {
                Some(Memory::Mapped(Buffer::zeroed(bytes)?.placed(cx)?))
            }
            WindowKind::AllocMem => Some(Memory::Allocated(Allocated::of(bytes, hints)?)),
        })
    }

    /// Returns the address of the first byte.
    pub(super) fn start(&self) -> *mut u8 {
        match self {
            Memory::Mapped(buffer) => buffer.start(),
            Memory::Allocated(Allocated(start)) => *start,
        }
    }
}

/// Memory of `MPI_Alloc_mem`.
pub(super) struct Allocated(*mut u8);

impl Allocated {
    fn of(bytes: u64, hints: Hints) -> Result<Allocated> {
        let size = ffi::MPI_Aint::try_from(bytes.max(1))
            .map_err(|_| Error::unsupported(format!("a buffer of {bytes} bytes could not be allocated")))?;
        let info = Info::of(hints)?;
        let mut start: *mut c_void = ptr::null_mut();
        // SAFETY: MPI stores an address of `size` bytes in `start`, which outlives the call. The info object is valid or null.
        check("MPI_Alloc_mem", unsafe { ffi::MPI_Alloc_mem(size, info.raw(), (&raw mut start).cast()) })?;
        Ok(Allocated(start.cast()))
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: MPI_Alloc_mem returned the address, only `drop` frees it, and its owner frees the window first.
        unsafe { ffi::MPI_Free_mem(self.0.cast()) };
    }
}

/// An owned info object with the hints of a window, or a null handle.
pub(super) struct Info(ffi::MPI_Info);

impl Info {
    pub(super) fn of(hints: Hints) -> Result<Info> {
        // SAFETY: `info` outlives the call that writes it, and key and value are zero-terminated.
        unsafe {
            let mut info = Info(ffi::RSMPI_INFO_NULL);
            if hints == Hints::On {
                check("MPI_Info_create", ffi::MPI_Info_create(&raw mut info.0))?;
                let (key, value) = (c"alloc_shm".as_ptr(), c"true".as_ptr());
                check("MPI_Info_set", ffi::MPI_Info_set(info.0, key, value))?;
            }
            Ok(info)
        }
    }

    pub(super) fn raw(&self) -> ffi::MPI_Info {
        self.0
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: `self` owns the info object, only `drop` frees it, and a null handle is not freed.
        unsafe {
            if self.0 != ffi::RSMPI_INFO_NULL {
                ffi::MPI_Info_free(&raw mut self.0);
            }
        }
    }
}
