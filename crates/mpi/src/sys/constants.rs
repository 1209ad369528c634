//! Constants that MPI defines as C macros, exported by the C shim.

use std::ffi::{c_int, c_void};

use mpi::ffi;

unsafe extern "C" {
    #[link_name = "ombx_BYTE"]
    pub(crate) safe static BYTE: ffi::MPI_Datatype;
    #[link_name = "ombx_SIGNED_CHAR"]
    pub(crate) safe static SIGNED_CHAR: ffi::MPI_Datatype;
    #[link_name = "ombx_REPLACE"]
    pub(crate) safe static REPLACE: ffi::MPI_Op;
    #[link_name = "ombx_NO_OP"]
    pub(crate) safe static NO_OP: ffi::MPI_Op;
    #[link_name = "ombx_IN_PLACE"]
    pub(crate) safe static IN_PLACE: *mut c_void;
    #[link_name = "ombx_sizeof_comm"]
    safe static SIZEOF_COMM: c_int;
    #[link_name = "ombx_sizeof_status"]
    safe static SIZEOF_STATUS: c_int;
}

// MPICH's handles are integers, Open MPI's are pointers.
const _: () = assert!(
    cfg!(mpi_family = "other") || (size_of::<ffi::MPI_Comm>() == 4) == cfg!(mpi_family = "mpich"),
    "mpi-sys was built with another MPI than ombx-mpi: use one target directory per MPI"
);

/// Returns whether the C shim and mpi-sys were compiled with the same `mpi.h`, judged by the sizes of two types.
pub(crate) fn same_headers() -> bool {
    SIZEOF_COMM as usize == size_of::<ffi::MPI_Comm>()
        && SIZEOF_STATUS as usize == size_of::<ffi::MPI_Status>()
}
