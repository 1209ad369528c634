//! The table of collective calls: each line gives the blocking, nonblocking and persistent form of an operation.

use std::ffi::c_int;

use mpi::ffi;

use super::{arguments::Arguments, data_flow::DataFlow};
use crate::{
    runtime::library::library_version,
    sys::session::{Routine, routine},
};

/// A collective operation of MPI in its three forms.
pub trait Call: 'static {
    /// The data flow.
    const FLOW: DataFlow;
    /// MPI's name of the blocking form, for messages.
    const NAME: &'static str;
    /// MPI's name of the nonblocking form.
    const START: &'static str;
    /// MPI's name of the call that creates a persistent request.
    const INIT: &'static str;

    /// Calls the blocking form.
    ///
    /// # Safety
    /// Communicator and buffers are valid, and buffers and arrays are as large as [`Call::FLOW`] requires of this rank. For the
    /// other forms this holds until the request is completed or freed.
    unsafe fn call(arguments: &Arguments) -> c_int;

    /// Calls the nonblocking form.
    ///
    /// # Safety
    /// See [`Call::call`].
    unsafe fn start(arguments: &Arguments, request: *mut ffi::MPI_Request) -> c_int;

    /// Creates a persistent request, or returns `None` if the library has no persistent collectives.
    ///
    /// # Safety
    /// See [`Call::call`].
    unsafe fn init(arguments: &Arguments, request: *mut ffi::MPI_Request) -> Option<c_int>;
}

/// Checks that the library has persistent collective operations.
///
/// # Errors
/// A message that names the library.
pub fn persistent_calls_exist() -> std::result::Result<(), String> {
    if routine(&[c"MPI_Bcast_init", c"MPIX_Bcast_init"]).is_some() {
        Ok(())
    } else {
        Err(format!("needs the persistent collectives of MPI 4; this is {}", library_version()))
    }
}

/// The inferred type of an argument.
macro_rules! its_type {
    ($argument:expr) => {
        _
    };
}

/// Declares operations: data flow, blocking call, nonblocking call, persistent call in MPI 4 and in Open MPI 4.1, arguments.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $flow:expr, $call:ident, $start:ident, $init:literal, $extension:literal, |$a:ident| ($($argument:expr),*);)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl Call for $name {
            const FLOW: DataFlow = $flow;
            const NAME: &'static str = stringify!($call);
            const START: &'static str = stringify!($start);
            const INIT: &'static str = concat!(stringify!($call), "_init");

            #[inline(always)]
            unsafe fn call($a: &Arguments) -> c_int {
                // SAFETY: the caller fulfils the contract of `Call::call`.
                unsafe { ffi::$call($($argument),*) }
            }

            #[inline(always)]
            unsafe fn start($a: &Arguments, request: *mut ffi::MPI_Request) -> c_int {
                // SAFETY: the caller fulfils the contract of `Call::call`.
                unsafe { ffi::$start($($argument,)* request) }
            }

            unsafe fn init($a: &Arguments, request: *mut ffi::MPI_Request) -> Option<c_int> {
                routine(&[$init, $extension]).map(|routine| {
                    // SAFETY: the persistent form takes the arguments of the nonblocking form, then an info, then the request
                    // (MPI 4.1, 6.13). The argument types are inferred from the same values as above. The caller fulfils the
                    // contract of `Call::call`.
                    unsafe {
                        let routine = std::mem::transmute::<
                            Routine,
                            unsafe extern "C" fn($(its_type!($argument),)* ffi::MPI_Info, *mut ffi::MPI_Request) -> c_int,
                        >(routine);
                        routine($($argument,)* ffi::RSMPI_INFO_NULL, request)
                    }
                })
            }
        }
    )*};
}

#[rustfmt::skip]
calls! {
    /// `MPI_Allgather`.
    Allgather: DataFlow::ALLGATHER, MPI_Allgather, MPI_Iallgather, c"MPI_Allgather_init", c"MPIX_Allgather_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Allgatherv`.
    Allgatherv: DataFlow::ALLGATHER.vector(), MPI_Allgatherv, MPI_Iallgatherv, c"MPI_Allgatherv_init", c"MPIX_Allgatherv_init",
        |a| (a.from, a.count, a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Allreduce`.
    Allreduce: DataFlow::ALLREDUCE, MPI_Allreduce, MPI_Iallreduce, c"MPI_Allreduce_init", c"MPIX_Allreduce_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Alltoall`.
    Alltoall: DataFlow::ALLTOALL, MPI_Alltoall, MPI_Ialltoall, c"MPI_Alltoall_init", c"MPIX_Alltoall_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Alltoallv`.
    Alltoallv: DataFlow::ALLTOALL.vector(), MPI_Alltoallv, MPI_Ialltoallv, c"MPI_Alltoallv_init", c"MPIX_Alltoallv_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Alltoallw`.
    Alltoallw: DataFlow::ALLTOALL.vector(), MPI_Alltoallw, MPI_Ialltoallw, c"MPI_Alltoallw_init", c"MPIX_Alltoallw_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.starts(), a.outgoing.datatypes(), a.to, a.incoming.counts(), a.incoming.starts(), a.incoming.datatypes(), a.comm);
    /// `MPI_Barrier`.
    Barrier: DataFlow::BARRIER, MPI_Barrier, MPI_Ibarrier, c"MPI_Barrier_init", c"MPIX_Barrier_init",
        |a| (a.comm);
    /// `MPI_Bcast`.
    Bcast: DataFlow::BCAST, MPI_Bcast, MPI_Ibcast, c"MPI_Bcast_init", c"MPIX_Bcast_init",
        |a| (a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Exscan`.
    Exscan: DataFlow::EXSCAN, MPI_Exscan, MPI_Iexscan, c"MPI_Exscan_init", c"MPIX_Exscan_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Gather`.
    Gather: DataFlow::GATHER, MPI_Gather, MPI_Igather, c"MPI_Gather_init", c"MPIX_Gather_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Gatherv`.
    Gatherv: DataFlow::GATHER.vector(), MPI_Gatherv, MPI_Igatherv, c"MPI_Gatherv_init", c"MPIX_Gatherv_init",
        |a| (a.from, a.count, a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.root, a.comm);
    /// `MPI_Neighbor_allgather`.
    NeighborAllgather: DataFlow::NEIGHBOR_ALLGATHER, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, c"MPI_Neighbor_allgather_init", c"MPIX_Neighbor_allgather_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Neighbor_allgatherv`.
    NeighborAllgatherv: DataFlow::NEIGHBOR_ALLGATHER.vector(), MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, c"MPI_Neighbor_allgatherv_init", c"MPIX_Neighbor_allgatherv_init",
        |a| (a.from, a.count, a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Neighbor_alltoall`.
    NeighborAlltoall: DataFlow::NEIGHBOR_ALLTOALL, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, c"MPI_Neighbor_alltoall_init", c"MPIX_Neighbor_alltoall_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Neighbor_alltoallv`.
    NeighborAlltoallv: DataFlow::NEIGHBOR_ALLTOALL.vector(), MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, c"MPI_Neighbor_alltoallv_init", c"MPIX_Neighbor_alltoallv_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Neighbor_alltoallw`.
    NeighborAlltoallw: DataFlow::NEIGHBOR_ALLTOALL.vector(), MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, c"MPI_Neighbor_alltoallw_init", c"MPIX_Neighbor_alltoallw_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.byte_displacements(), a.outgoing.datatypes(), a.to, a.incoming.counts(), a.incoming.byte_displacements(), a.incoming.datatypes(), a.comm);
    /// `MPI_Reduce`.
    Reduce: DataFlow::REDUCE, MPI_Reduce, MPI_Ireduce, c"MPI_Reduce_init", c"MPIX_Reduce_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.root, a.comm);
    /// `MPI_Reduce_scatter`.
    ReduceScatter: DataFlow::REDUCE_SCATTER.vector(), MPI_Reduce_scatter, MPI_Ireduce_scatter, c"MPI_Reduce_scatter_init", c"MPIX_Reduce_scatter_init",
        |a| (a.from, a.to, a.incoming.counts(), a.datatype, a.op, a.comm);
    /// `MPI_Reduce_scatter_block`.
    ReduceScatterBlock: DataFlow::REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, c"MPI_Reduce_scatter_block_init", c"MPIX_Reduce_scatter_block_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Scan`.
    Scan: DataFlow::SCAN, MPI_Scan, MPI_Iscan, c"MPI_Scan_init", c"MPIX_Scan_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Scatter`.
    Scatter: DataFlow::SCATTER, MPI_Scatter, MPI_Iscatter, c"MPI_Scatter_init", c"MPIX_Scatter_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Scatterv`.
    Scatterv: DataFlow::SCATTER.vector(), MPI_Scatterv, MPI_Iscatterv, c"MPI_Scatterv_init", c"MPIX_Scatterv_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
}
