//! The calls of every operation: one table of arguments gives the blocking, nonblocking and persistent form of each.

use std::ffi::c_int;

use mpi::ffi;

use super::{arguments::Arguments, shape::Shape};
use crate::library::library_version;

/// An operation of the library in its three forms.
pub trait Call: 'static {
    /// What it moves.
    const SHAPE: Shape;
    /// What its blocking form is called, for messages.
    const NAME: &'static str;
    /// The same of its nonblocking form.
    const START: &'static str;
    /// The same of the call that makes a persistent request.
    const INIT: &'static str;

    /// The blocking form.
    ///
    /// # Safety
    /// Buffers, lists and communicator are live and as large as [`Call::SHAPE`] says of this rank; so for the other forms,
    /// until the request has completed.
    unsafe fn call(arguments: &Arguments) -> c_int;

    /// The nonblocking form.
    ///
    /// # Safety
    /// See [`Call::call`].
    unsafe fn start(arguments: &Arguments, request: *mut ffi::MPI_Request) -> c_int;

    /// Makes a persistent request, where the library has them.
    ///
    /// # Safety
    /// See [`Call::call`].
    unsafe fn init(arguments: &Arguments, request: *mut ffi::MPI_Request) -> Option<c_int>;
}

/// A function of the library whose type is known where it is called.
type Routine = unsafe extern "C" fn();

unsafe extern "C" {
    #[link_name = "ombx_init_Bcast"]
    safe static BCAST_INIT: Option<Routine>;
}

/// Whether the library has persistent collective operations; the reason if not.
pub fn persistent_calls_exist() -> std::result::Result<(), String> {
    match BCAST_INIT {
        Some(_) => Ok(()),
        None => Err(format!("needs persistent collectives, of MPI 4; this is {}", library_version())),
    }
}

/// The type of an argument is that of the value.
macro_rules! its_type {
    ($argument:expr) => {
        _
    };
}

/// Operations: shape, blocking call, nonblocking call, where the call is that makes persistent requests, and their arguments.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $shape:expr, $call:ident, $start:ident, $init:literal, |$a:ident| ($($argument:expr),*);)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl Call for $name {
            const SHAPE: Shape = $shape;
            const NAME: &'static str = stringify!($call);
            const START: &'static str = stringify!($start);
            const INIT: &'static str = concat!(stringify!($call), "_init");

            #[inline(always)]
            unsafe fn call($a: &Arguments) -> c_int {
                // SAFETY: promised by the caller.
                unsafe { ffi::$call($($argument),*) }
            }

            #[inline(always)]
            unsafe fn start($a: &Arguments, request: *mut ffi::MPI_Request) -> c_int {
                // SAFETY: promised by the caller.
                unsafe { ffi::$start($($argument,)* request) }
            }

            unsafe fn init($a: &Arguments, request: *mut ffi::MPI_Request) -> Option<c_int> {
                unsafe extern "C" {
                    #[link_name = $init]
                    safe static INIT: Option<Routine>;
                }
                INIT.map(|routine| {
                    // SAFETY: MPI 4.1, 6.13: the arguments of the nonblocking form, then an info, then the request; the
                    // types are those that the nonblocking form above is called with. The rest is promised by the caller.
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
    /// `MPI_Allgather` and its kin.
    Allgather: Shape::ALLGATHER, MPI_Allgather, MPI_Iallgather, "ombx_init_Allgather",
        |a| (a.from, a.count, a.kind, a.to, a.count, a.kind, a.comm);
    /// `MPI_Allgatherv` and its kin.
    Allgatherv: Shape::ALLGATHER.listed(), MPI_Allgatherv, MPI_Iallgatherv, "ombx_init_Allgatherv",
        |a| (a.from, a.count, a.kind, a.to, a.counts(), a.starts(), a.kind, a.comm);
    /// `MPI_Allreduce` and its kin.
    Allreduce: Shape::ALLREDUCE, MPI_Allreduce, MPI_Iallreduce, "ombx_init_Allreduce",
        |a| (a.from, a.to, a.count, a.kind, a.sum, a.comm);
    /// `MPI_Alltoall` and its kin.
    Alltoall: Shape::ALLTOALL, MPI_Alltoall, MPI_Ialltoall, "ombx_init_Alltoall",
        |a| (a.from, a.count, a.kind, a.to, a.count, a.kind, a.comm);
    /// `MPI_Alltoallv` and its kin.
    Alltoallv: Shape::ALLTOALL.listed(), MPI_Alltoallv, MPI_Ialltoallv, "ombx_init_Alltoallv",
        |a| (a.from, a.counts(), a.starts(), a.kind, a.to, a.counts(), a.starts(), a.kind, a.comm);
    /// `MPI_Alltoallw` and its kin.
    Alltoallw: Shape::ALLTOALL.listed(), MPI_Alltoallw, MPI_Ialltoallw, "ombx_init_Alltoallw",
        |a| (a.from, a.counts(), a.starts(), a.kinds(), a.to, a.counts(), a.starts(), a.kinds(), a.comm);
    /// `MPI_Barrier` and its kin.
    Barrier: Shape::BARRIER, MPI_Barrier, MPI_Ibarrier, "ombx_init_Barrier",
        |a| (a.comm);
    /// `MPI_Bcast` and its kin.
    Bcast: Shape::BCAST, MPI_Bcast, MPI_Ibcast, "ombx_init_Bcast",
        |a| (a.to, a.count, a.kind, a.root, a.comm);
    /// `MPI_Exscan` and its kin.
    Exscan: Shape::EXSCAN, MPI_Exscan, MPI_Iexscan, "ombx_init_Exscan",
        |a| (a.from, a.to, a.count, a.kind, a.sum, a.comm);
    /// `MPI_Gather` and its kin.
    Gather: Shape::GATHER, MPI_Gather, MPI_Igather, "ombx_init_Gather",
        |a| (a.from, a.count, a.kind, a.to, a.count, a.kind, a.root, a.comm);
    /// `MPI_Gatherv` and its kin.
    Gatherv: Shape::GATHER.listed(), MPI_Gatherv, MPI_Igatherv, "ombx_init_Gatherv",
        |a| (a.from, a.count, a.kind, a.to, a.counts(), a.starts(), a.kind, a.root, a.comm);
    /// `MPI_Neighbor_allgather` and its kin.
    NeighborAllgather: Shape::NEIGHBOR_ALLGATHER, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, "ombx_init_Neighbor_allgather",
        |a| (a.from, a.count, a.kind, a.to, a.count, a.kind, a.comm);
    /// `MPI_Neighbor_allgatherv` and its kin.
    NeighborAllgatherv: Shape::NEIGHBOR_ALLGATHER.listed(), MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, "ombx_init_Neighbor_allgatherv",
        |a| (a.from, a.count, a.kind, a.to, a.counts(), a.starts(), a.kind, a.comm);
    /// `MPI_Neighbor_alltoall` and its kin.
    NeighborAlltoall: Shape::NEIGHBOR_ALLTOALL, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, "ombx_init_Neighbor_alltoall",
        |a| (a.from, a.count, a.kind, a.to, a.count, a.kind, a.comm);
    /// `MPI_Neighbor_alltoallv` and its kin.
    NeighborAlltoallv: Shape::NEIGHBOR_ALLTOALL.listed(), MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, "ombx_init_Neighbor_alltoallv",
        |a| (a.from, a.counts(), a.starts(), a.kind, a.to, a.counts(), a.starts(), a.kind, a.comm);
    /// `MPI_Neighbor_alltoallw` and its kin.
    NeighborAlltoallw: Shape::NEIGHBOR_ALLTOALL.listed(), MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, "ombx_init_Neighbor_alltoallw",
        |a| (a.from, a.counts(), a.offsets(), a.kinds(), a.to, a.counts(), a.offsets(), a.kinds(), a.comm);
    /// `MPI_Reduce` and its kin.
    Reduce: Shape::REDUCE, MPI_Reduce, MPI_Ireduce, "ombx_init_Reduce",
        |a| (a.from, a.to, a.count, a.kind, a.sum, a.root, a.comm);
    /// `MPI_Reduce_scatter` and its kin.
    ReduceScatter: Shape::REDUCE_SCATTER.listed(), MPI_Reduce_scatter, MPI_Ireduce_scatter, "ombx_init_Reduce_scatter",
        |a| (a.from, a.to, a.counts(), a.kind, a.sum, a.comm);
    /// `MPI_Reduce_scatter_block` and its kin.
    ReduceScatterBlock: Shape::REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, "ombx_init_Reduce_scatter_block",
        |a| (a.from, a.to, a.count, a.kind, a.sum, a.comm);
    /// `MPI_Scan` and its kin.
    Scan: Shape::SCAN, MPI_Scan, MPI_Iscan, "ombx_init_Scan",
        |a| (a.from, a.to, a.count, a.kind, a.sum, a.comm);
    /// `MPI_Scatter` and its kin.
    Scatter: Shape::SCATTER, MPI_Scatter, MPI_Iscatter, "ombx_init_Scatter",
        |a| (a.from, a.count, a.kind, a.to, a.count, a.kind, a.root, a.comm);
    /// `MPI_Scatterv` and its kin.
    Scatterv: Shape::SCATTER.listed(), MPI_Scatterv, MPI_Iscatterv, "ombx_init_Scatterv",
        |a| (a.from, a.counts(), a.starts(), a.kind, a.to, a.count, a.kind, a.root, a.comm);
}
