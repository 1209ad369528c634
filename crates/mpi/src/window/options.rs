//! The choices that determine how a window is created.

use ombx_core::benchmark::{Context, ReductionOp, memory::BufferMemory, payload::Slots};

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
    /// Returns the options of a window for puts and gets, which has one local buffer.
    pub const fn for_puts_and_gets(kind: WindowKind, slots: Slots, hints: Hints) -> WindowOptions {
        WindowOptions { kind, slots, local_slots: slots.count, locals: 1, hints, op: ReductionOp::Sum }
    }
}
