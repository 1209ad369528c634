//! The choices that determine how a window is created.

use ombx_core::benchmark::payload::Slots;

ombx_core::axis! {
    /// How the window is made
    pub enum WindowKind: "win", Always, default Allocate {
        /// MPI_Win_allocate: the library chooses the memory
        Allocate = "allocate",
        /// MPI_Win_create: memory of ombx
        Create = "create",
        /// MPI_Win_create_dynamic and MPI_Win_attach; absolute addresses
        Dynamic = "dynamic",
        /// MPI_Win_allocate_shared: ranks of one host only
        Shared = "shared",
    }
}

ombx_core::axis! {
    /// Hints (alloc_shm) for windows that the library allocates
    pub enum Hints: "hints", IfChosen, default On {
        /// alloc_shm is true
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
    /// The slots of the exposed memory and of each local buffer.
    pub slots: Slots,
    /// Number of local buffers, 1 to 3: the origin's data, fetched results, values to compare with.
    pub locals: usize,
    /// Whether `MPI_Win_allocate` gets hints.
    pub hints: Hints,
}
