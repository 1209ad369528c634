//! One-sided communication: windows, their synchronisation, and the operations inside an access epoch.

pub(crate) mod epoch;
pub(crate) mod handle;

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use mpi::ffi;
use ombx_core::{
    benchmark::{Context, Parameter, ParameterValue, ReductionOp, memory::BufferMemory, payload::Slots},
    error::{Error, Result},
    unit::Rank,
};

use crate::{
    Buffer, MpiTeam,
    sys::{BYTE, error::check},
};

ombx_core::parameter! {
    /// MPI call that creates the window
    pub enum WindowKind: "win", Always, default Allocate {
        /// MPI_Win_allocate: the library allocates the memory
        Allocate = "allocate",
        /// MPI_Win_create: ombx allocates the memory
        Create = "create",
        /// MPI_Alloc_mem, then MPI_Win_create: the library allocates the memory before the window, as in OMB 3.x
        AllocMem = "alloc_mem",
        /// MPI_Win_create_dynamic and MPI_Win_attach; absolute addresses
        Dynamic = "dynamic",
        /// MPI_Win_allocate_shared: all ranks on one host
        Shared = "shared",
    }
}

ombx_core::parameter! {
    /// Hints (alloc_shm) for memory that the library allocates: --win allocate and alloc_mem
    pub enum Hints: "hints", IfChosen, default On {
        /// Set alloc_shm=true
        On = "on",
        /// No info object
        Off = "off",
    }
}

/// Options of [`Window::open`](crate::Window::open).
#[derive(Debug, Clone, Copy)]
pub struct WindowOptions {
    /// The MPI call that creates the window.
    pub kind: WindowKind,
    /// The slots of the exposed memory, with the type of their elements.
    pub slots: Slots,
    /// Number of such slots of each local buffer.
    pub local_slots: u32,
    /// Number of local buffers, 1 to 3: the origin's data, fetched results, values to compare with.
    pub locals: usize,
    /// Whether `MPI_Win_allocate` and `MPI_Alloc_mem` get hints.
    pub hints: Hints,
    /// Operation of accumulates, which is a predefined one.
    pub op: ReductionOp,
}

impl WindowKind {
    /// Returns the kind of a window that the user does not choose: MPI allocates its memory, unless the buffers are on devices.
    pub fn usual(cx: &Context<'_>) -> WindowKind {
        if cx.get::<BufferMemory>().is_host() { WindowKind::Allocate } else { WindowKind::Create }
    }
}

impl WindowOptions {
    /// Parameters of a window, besides its kind and those of the buffers.
    pub const PARAMETERS: &'static [&'static Parameter] = &[Hints::PARAMETER];

    /// Returns the options of a window for puts and gets, which has one local buffer.
    pub const fn for_puts_and_gets(kind: WindowKind, slots: Slots, hints: Hints) -> WindowOptions {
        WindowOptions { kind, slots, local_slots: slots.count, locals: 1, hints, op: ReductionOp::Sum }
    }
}

/// Memory for a window. It is freed after the window.
enum WindowMemory {
    /// Memory that ombx maps.
    Mapped(Buffer),
    /// Memory of `MPI_Alloc_mem`.
    Allocated(Allocated),
}

impl WindowMemory {
    /// Returns the memory for a kind of window; `None` if the call that creates the window allocates it.
    ///
    /// # Errors
    /// The memory is not available.
    fn new(cx: &Context<'_>, kind: WindowKind, bytes: u64, hints: Hints) -> Result<Option<WindowMemory>> {
        let is_own = matches!(kind, WindowKind::Create | WindowKind::Dynamic);
        if !is_own && !cx.get::<BufferMemory>().is_host() {
            return Err(Error::unsupported(
                "MPI allocates the memory of this window itself, on the host: choose --win create or --win dynamic",
            ));
        }
        Ok(match kind {
            WindowKind::Allocate | WindowKind::Shared => None,
            WindowKind::Create | WindowKind::Dynamic => {
                Some(WindowMemory::Mapped(Buffer::zeroed(bytes)?.placed(cx)?))
            }
            WindowKind::AllocMem => Some(WindowMemory::Allocated(Allocated::new(bytes, hints)?)),
        })
    }

    /// Returns the address of the first byte.
    fn start(&self) -> *mut u8 {
        match self {
            WindowMemory::Mapped(buffer) => buffer.start(),
            WindowMemory::Allocated(Allocated(start)) => *start,
        }
    }
}

/// Memory of `MPI_Alloc_mem`.
struct Allocated(*mut u8);

impl Allocated {
    fn new(bytes: u64, hints: Hints) -> Result<Allocated> {
        let size = ffi::MPI_Aint::try_from(bytes.max(1))
            .map_err(|_| Error::unsupported(format!("a buffer of {bytes} bytes could not be allocated")))?;
        let info = Info::new(hints)?;
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
struct Info(ffi::MPI_Info);

impl Info {
    fn new(hints: Hints) -> Result<Info> {
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

    fn raw(&self) -> ffi::MPI_Info {
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
