//! The table of collective calls: each line gives the blocking, nonblocking and persistent form of an operation.

use std::ffi::c_int;

use mpi::ffi;

use super::{arguments::Arguments, data_flow::DataFlow};
use crate::runtime::library::library_version;

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

/// Address of an MPI function. The caller casts it to its type.
type Routine = unsafe extern "C" fn();

unsafe extern "C" {
    #[link_name = "ombx_init_Bcast"]
    safe static BCAST_INIT: Option<Routine>;
}

/// Checks that the library has persistent collective operations.
///
/// # Errors
/// A message that names the library.
pub fn persistent_calls_exist() -> std::result::Result<(), String> {
    match BCAST_INIT {
        Some(_) => Ok(()),
        None => Err(format!("needs the persistent collectives of MPI 4; this is {}", library_version())),
    }
}

/// The inferred type of an argument.
macro_rules! its_type {
    ($argument:expr) => {
        _
    };
}

/// Declares operations: data flow, blocking call, nonblocking call, symbol of the persistent call's address, arguments.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $flow:expr, $call:ident, $start:ident, $init:literal, |$a:ident| ($($argument:expr),*);)*) => {$(
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
                unsafe extern "C" {
                    #[link_name = $init]
                    safe static INIT: Option<Routine>;
                }
                INIT.map(|routine| {
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
    Allgather: DataFlow::ALLGATHER, MPI_Allgather, MPI_Iallgather, "ombx_init_Allgather",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Allgatherv`.
    Allgatherv: DataFlow::ALLGATHER.vector(), MPI_Allgatherv, MPI_Iallgatherv, "ombx_init_Allgatherv",
        |a| (a.from, a.count, a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Allreduce`.
    Allreduce: DataFlow::ALLREDUCE, MPI_Allreduce, MPI_Iallreduce, "ombx_init_Allreduce",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Alltoall`.
    Alltoall: DataFlow::ALLTOALL, MPI_Alltoall, MPI_Ialltoall, "ombx_init_Alltoall",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Alltoallv`.
    Alltoallv: DataFlow::ALLTOALL.vector(), MPI_Alltoallv, MPI_Ialltoallv, "ombx_init_Alltoallv",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Alltoallw`.
    Alltoallw: DataFlow::ALLTOALL.vector(), MPI_Alltoallw, MPI_Ialltoallw, "ombx_init_Alltoallw",
        |a| (a.from, a.outgoing.counts(), a.outgoing.starts(), a.outgoing.datatypes(), a.to, a.incoming.counts(), a.incoming.starts(), a.incoming.datatypes(), a.comm);
    /// `MPI_Barrier`.
    Barrier: DataFlow::BARRIER, MPI_Barrier, MPI_Ibarrier, "ombx_init_Barrier",
        |a| (a.comm);
    /// `MPI_Bcast`.
    Bcast: DataFlow::BCAST, MPI_Bcast, MPI_Ibcast, "ombx_init_Bcast",
        |a| (a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Exscan`.
    Exscan: DataFlow::EXSCAN, MPI_Exscan, MPI_Iexscan, "ombx_init_Exscan",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Gather`.
    Gather: DataFlow::GATHER, MPI_Gather, MPI_Igather, "ombx_init_Gather",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Gatherv`.
    Gatherv: DataFlow::GATHER.vector(), MPI_Gatherv, MPI_Igatherv, "ombx_init_Gatherv",
        |a| (a.from, a.count, a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.root, a.comm);
    /// `MPI_Neighbor_allgather`.
    NeighborAllgather: DataFlow::NEIGHBOR_ALLGATHER, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, "ombx_init_Neighbor_allgather",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Neighbor_allgatherv`.
    NeighborAllgatherv: DataFlow::NEIGHBOR_ALLGATHER.vector(), MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, "ombx_init_Neighbor_allgatherv",
        |a| (a.from, a.count, a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Neighbor_alltoall`.
    NeighborAlltoall: DataFlow::NEIGHBOR_ALLTOALL, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, "ombx_init_Neighbor_alltoall",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Neighbor_alltoallv`.
    NeighborAlltoallv: DataFlow::NEIGHBOR_ALLTOALL.vector(), MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, "ombx_init_Neighbor_alltoallv",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype, a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Neighbor_alltoallw`.
    NeighborAlltoallw: DataFlow::NEIGHBOR_ALLTOALL.vector(), MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, "ombx_init_Neighbor_alltoallw",
        |a| (a.from, a.outgoing.counts(), a.outgoing.byte_displacements(), a.outgoing.datatypes(), a.to, a.incoming.counts(), a.incoming.byte_displacements(), a.incoming.datatypes(), a.comm);
    /// `MPI_Reduce`.
    Reduce: DataFlow::REDUCE, MPI_Reduce, MPI_Ireduce, "ombx_init_Reduce",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.root, a.comm);
    /// `MPI_Reduce_scatter`.
    ReduceScatter: DataFlow::REDUCE_SCATTER.vector(), MPI_Reduce_scatter, MPI_Ireduce_scatter, "ombx_init_Reduce_scatter",
        |a| (a.from, a.to, a.incoming.counts(), a.datatype, a.op, a.comm);
    /// `MPI_Reduce_scatter_block`.
    ReduceScatterBlock: DataFlow::REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, "ombx_init_Reduce_scatter_block",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Scan`.
    Scan: DataFlow::SCAN, MPI_Scan, MPI_Iscan, "ombx_init_Scan",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Scatter`.
    Scatter: DataFlow::SCATTER, MPI_Scatter, MPI_Iscatter, "ombx_init_Scatter",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Scatterv`.
    Scatterv: DataFlow::SCATTER.vector(), MPI_Scatterv, MPI_Iscatterv, "ombx_init_Scatterv",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
}
