//! The life of a window: `MPI_Win_create`, an epoch with one put, and `MPI_Win_free`.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::{Error, Result},
    unit::Rank,
};

use crate::{
    Buffer, MpiTeam,
    sys::{constants::BYTE, error::check},
};

/// Largest message of the put in bytes.
const PUT: u64 = 8;

/// Memory that windows expose one after the other, and the data of the put into it.
#[derive(Debug)]
pub struct WindowLifetime {
    comm: ffi::MPI_Comm,
    rank: c_int,
    bytes: ffi::MPI_Aint,
    /// Bytes of the put.
    put: c_int,
    data: Buffer,
    memory: Buffer,
}

impl WindowLifetime {
    /// Allocates the memory for windows of `bytes` bytes. Collective.
    ///
    /// # Errors
    /// The memory is not available.
    pub fn open(cx: &Context<'_>, bytes: u64) -> Result<WindowLifetime> {
        let team: &MpiTeam = cx.fabric()?;
        let slots = WindowLifetime::slots(bytes);
        cx.afford(bytes.saturating_add(slots.total()))?;
        let parts = ffi::MPI_Aint::try_from(bytes)
            .map_err(|_| Error::unsupported(format!("a window of {bytes} bytes is too large")))
            .and_then(|size| {
                Ok((size, Buffer::zeroed(slots.total())?, Buffer::zeroed(bytes.max(slots.total()))?))
            });
        let (size, data, memory) = cx.agree(parts)?;
        let rank = cx.rank().0 as c_int;
        let mut lifetime = WindowLifetime {
            comm: team.comm().raw(),
            rank,
            bytes: size,
            put: slots.bytes as c_int,
            data,
            memory,
        };
        team.lend(|handles| {
            handles.describe_slots(Slots::new(bytes, 1));
            handles.elements = lifetime.put;
            handles.outgoing = lifetime.data.bytes_mut().as_mut_ptr().cast();
            handles.incoming = lifetime.memory.bytes_mut().as_mut_ptr().cast();
        });
        Ok(lifetime)
    }

    /// Returns the message of the put into a window of `bytes` bytes.
    pub fn slots(bytes: u64) -> Slots {
        Slots::new(bytes.min(PUT), 1)
    }

    /// Creates a window, puts a message into the memory of this rank between two fences, and frees the window. Collective.
    ///
    /// # Errors
    /// A call of MPI failed.
    #[inline(always)]
    pub fn pass(&mut self) -> Result<()> {
        let (rank, put, from) = (self.rank, self.put, self.data.start().cast::<c_void>());
        let memory = self.memory.start().cast::<c_void>();
        // SAFETY: the memory has at least `bytes` bytes, and the window is freed before the call returns. Data and memory have `put`
        // bytes, do not overlap, and are not accessed while the epoch is open.
        unsafe {
            let mut window = ffi::RSMPI_WIN_NULL;
            let (none, raw) = (ffi::RSMPI_INFO_NULL, &raw mut window);
            check("MPI_Win_create", ffi::MPI_Win_create(memory, self.bytes, 1, none, self.comm, raw))?;
            check("MPI_Win_fence", ffi::MPI_Win_fence(0, window))?;
            check("MPI_Put", ffi::MPI_Put(from, put, BYTE, rank, 0, put, BYTE, window))?;
            check("MPI_Win_fence", ffi::MPI_Win_fence(0, window))?;
            check("MPI_Win_free", ffi::MPI_Win_free(raw))
        }
    }

    /// Returns this rank's number, whose data are in its own memory.
    pub fn rank(&self) -> Rank {
        Rank(self.rank as u32)
    }

    /// Returns the data of the put.
    pub fn data(&mut self) -> &mut [u8] {
        self.data.bytes_mut()
    }

    /// Returns the memory of the windows.
    pub fn memory(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}
