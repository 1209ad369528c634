//! The table of collective calls: each line gives the blocking, nonblocking and persistent form of an operation.

use std::ffi::c_int;

use mpi::ffi;
use ombx_core::benchmark::BusTraffic;

use super::arguments::Arguments;
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
    ($(
        $(#[$doc:meta])* $name:ident: $flow:expr, $call:ident, $start:ident, $init:literal, $extension:literal,
        |$a:ident| ($($argument:expr),*);
    )*) => {$(
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
                            unsafe extern "C" fn(
                                $(its_type!($argument),)* ffi::MPI_Info, *mut ffi::MPI_Request
                            ) -> c_int,
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
    Allgather: DataFlow::ALLGATHER, MPI_Allgather, MPI_Iallgather,
        c"MPI_Allgather_init", c"MPIX_Allgather_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Allgatherv`.
    Allgatherv: DataFlow::ALLGATHER.vector(), MPI_Allgatherv, MPI_Iallgatherv,
        c"MPI_Allgatherv_init", c"MPIX_Allgatherv_init",
        |a| (a.from, a.count, a.datatype,
            a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Allreduce`.
    Allreduce: DataFlow::ALLREDUCE, MPI_Allreduce, MPI_Iallreduce,
        c"MPI_Allreduce_init", c"MPIX_Allreduce_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Alltoall`.
    Alltoall: DataFlow::ALLTOALL, MPI_Alltoall, MPI_Ialltoall, c"MPI_Alltoall_init", c"MPIX_Alltoall_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Alltoallv`.
    Alltoallv: DataFlow::ALLTOALL.vector(), MPI_Alltoallv, MPI_Ialltoallv,
        c"MPI_Alltoallv_init", c"MPIX_Alltoallv_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype,
            a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Alltoallw`.
    Alltoallw: DataFlow::ALLTOALL.vector(), MPI_Alltoallw, MPI_Ialltoallw,
        c"MPI_Alltoallw_init", c"MPIX_Alltoallw_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.starts(), a.outgoing.datatypes(),
            a.to, a.incoming.counts(), a.incoming.starts(), a.incoming.datatypes(), a.comm);
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
        |a| (a.from, a.count, a.datatype,
            a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.root, a.comm);
    /// `MPI_Neighbor_allgather`.
    NeighborAllgather: DataFlow::NEIGHBOR_ALLGATHER, MPI_Neighbor_allgather, MPI_Ineighbor_allgather,
        c"MPI_Neighbor_allgather_init", c"MPIX_Neighbor_allgather_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Neighbor_allgatherv`.
    NeighborAllgatherv: DataFlow::NEIGHBOR_ALLGATHER.vector(), MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv,
        c"MPI_Neighbor_allgatherv_init", c"MPIX_Neighbor_allgatherv_init",
        |a| (a.from, a.count, a.datatype,
            a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Neighbor_alltoall`.
    NeighborAlltoall: DataFlow::NEIGHBOR_ALLTOALL, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall,
        c"MPI_Neighbor_alltoall_init", c"MPIX_Neighbor_alltoall_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.comm);
    /// `MPI_Neighbor_alltoallv`.
    NeighborAlltoallv: DataFlow::NEIGHBOR_ALLTOALL.vector(), MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv,
        c"MPI_Neighbor_alltoallv_init", c"MPIX_Neighbor_alltoallv_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype,
            a.to, a.incoming.counts(), a.incoming.displacements(), a.datatype, a.comm);
    /// `MPI_Neighbor_alltoallw`.
    NeighborAlltoallw: DataFlow::NEIGHBOR_ALLTOALL.vector(), MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw,
        c"MPI_Neighbor_alltoallw_init", c"MPIX_Neighbor_alltoallw_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.byte_displacements(), a.outgoing.datatypes(),
            a.to, a.incoming.counts(), a.incoming.byte_displacements(), a.incoming.datatypes(), a.comm);
    /// `MPI_Reduce`.
    Reduce: DataFlow::REDUCE, MPI_Reduce, MPI_Ireduce, c"MPI_Reduce_init", c"MPIX_Reduce_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.root, a.comm);
    /// `MPI_Reduce_scatter`.
    ReduceScatter: DataFlow::REDUCE_SCATTER.vector(), MPI_Reduce_scatter, MPI_Ireduce_scatter,
        c"MPI_Reduce_scatter_init", c"MPIX_Reduce_scatter_init",
        |a| (a.from, a.to, a.incoming.counts(), a.datatype, a.op, a.comm);
    /// `MPI_Reduce_scatter_block`.
    ReduceScatterBlock: DataFlow::REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
        c"MPI_Reduce_scatter_block_init", c"MPIX_Reduce_scatter_block_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Scan`.
    Scan: DataFlow::SCAN, MPI_Scan, MPI_Iscan, c"MPI_Scan_init", c"MPIX_Scan_init",
        |a| (a.from, a.to, a.count, a.datatype, a.op, a.comm);
    /// `MPI_Scatter`.
    Scatter: DataFlow::SCATTER, MPI_Scatter, MPI_Iscatter, c"MPI_Scatter_init", c"MPIX_Scatter_init",
        |a| (a.from, a.count, a.datatype, a.to, a.count, a.datatype, a.root, a.comm);
    /// `MPI_Scatterv`.
    Scatterv: DataFlow::SCATTER.vector(), MPI_Scatterv, MPI_Iscatterv,
        c"MPI_Scatterv_init", c"MPIX_Scatterv_init",
        |a| (a.from, a.outgoing.counts(), a.outgoing.displacements(), a.datatype,
            a.to, a.count, a.datatype, a.root, a.comm);
}

/// The blocks that each rank sends and receives, and the ranks whose data is reduced. It determines the bytes per rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataFlow {
    /// The data that ranks send.
    pub sends: Share,
    /// The data that ranks receive.
    pub receives: Share,
    /// The ranks whose data is reduced into a result.
    pub reduces: ReductionScope,
    /// Whether the call takes arrays of counts and displacements, as those with a name in v or w do. The largest displacement
    /// must fit an `int`.
    pub vector: bool,
}

/// The number of blocks of the message size on some ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The ranks that have these blocks.
    pub who: Participants,
    /// Number of blocks on each of these ranks.
    pub blocks: Blocks,
}

/// The ranks that send or receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Participants {
    /// All ranks.
    Everyone,
    /// The root only.
    Root,
    /// All ranks except the root.
    Others,
}

/// A number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// No block.
    None,
    /// One block.
    One,
    /// One block per rank.
    Ranks,
    /// One block per neighbour.
    Neighbours,
    /// A rank's portion of one block, in whole elements. The first ranks get one more where the number is not divisible.
    Portion,
}

/// The ranks whose data is reduced into a rank's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReductionScope {
    /// None: the operation moves data.
    Nothing,
    /// All ranks.
    All,
    /// The ranks up to and including the receiving rank, as in `MPI_Scan`.
    Inclusive,
    /// The ranks before the receiving rank, as in `MPI_Exscan`. The first rank gets no result.
    Exclusive,
}

const fn share(who: Participants, blocks: Blocks) -> Share {
    Share { who, blocks }
}

const fn moves(sends: Share, receives: Share) -> DataFlow {
    DataFlow { sends, receives, reduces: ReductionScope::Nothing, vector: false }
}

impl DataFlow {
    /// No data moves.
    pub const BARRIER: DataFlow =
        moves(share(Participants::Everyone, Blocks::None), share(Participants::Everyone, Blocks::None));
    /// The root's block goes to all other ranks.
    pub const BCAST: DataFlow =
        moves(share(Participants::Root, Blocks::One), share(Participants::Others, Blocks::One));
    /// Each rank's block goes to the root.
    pub const GATHER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Root, Blocks::Ranks));
    /// The root sends a block to each rank.
    pub const SCATTER: DataFlow =
        moves(share(Participants::Root, Blocks::Ranks), share(Participants::Everyone, Blocks::One));
    /// Each rank's block goes to all ranks.
    pub const ALLGATHER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::Ranks));
    /// Each rank sends a different block to each rank.
    pub const ALLTOALL: DataFlow =
        moves(share(Participants::Everyone, Blocks::Ranks), share(Participants::Everyone, Blocks::Ranks));
    /// Each rank's block goes to its neighbours.
    pub const NEIGHBOR_ALLGATHER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::Neighbours));
    /// Each rank sends a different block to each neighbour.
    pub const NEIGHBOR_ALLTOALL: DataFlow = moves(
        share(Participants::Everyone, Blocks::Neighbours),
        share(Participants::Everyone, Blocks::Neighbours),
    );
    /// The sum of all ranks' blocks goes to the root.
    pub const REDUCE: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Root, Blocks::One)).all();
    /// The sum of all ranks' blocks goes to all ranks.
    pub const ALLREDUCE: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::One)).all();
    /// Each rank gets its portion of the sum of all ranks' blocks.
    pub const REDUCE_SCATTER: DataFlow =
        moves(share(Participants::Everyone, Blocks::One), share(Participants::Everyone, Blocks::Portion))
            .all();
    /// Each rank has a block per rank, and rank `r` gets the sum of all blocks `r`.
    pub const REDUCE_SCATTER_BLOCK: DataFlow =
        moves(share(Participants::Everyone, Blocks::Ranks), share(Participants::Everyone, Blocks::One)).all();
    /// Each rank gets the sum of the blocks of the ranks up to itself.
    pub const SCAN: DataFlow = DataFlow { reduces: ReductionScope::Inclusive, ..DataFlow::ALLREDUCE };
    /// Each rank gets the sum of the blocks of the ranks before it.
    pub const EXSCAN: DataFlow = DataFlow { reduces: ReductionScope::Exclusive, ..DataFlow::ALLREDUCE };

    const fn all(self) -> DataFlow {
        DataFlow { reduces: ReductionScope::All, ..self }
    }

    /// Returns the same data flow for a call that takes arrays of counts and displacements.
    #[must_use]
    pub const fn vector(self) -> DataFlow {
        DataFlow { vector: true, ..self }
    }

    /// Returns whether one rank is the root.
    pub const fn is_rooted(self) -> bool {
        !matches!((self.sends.who, self.receives.who), (Participants::Everyone, Participants::Everyone))
    }

    /// Returns whether the operation combines what ranks send.
    pub const fn reduces(self) -> bool {
        !matches!(self.reduces, ReductionScope::Nothing)
    }

    /// Returns whether ranks exchange data with neighbours only.
    pub const fn has_neighbours(self) -> bool {
        matches!(self.receives.blocks, Blocks::Neighbours)
    }

    /// Returns whether any data moves.
    pub const fn has_messages(self) -> bool {
        !matches!(self.sends.blocks, Blocks::None)
    }

    /// Returns what defines the algorithm and bus bandwidth for blocks of `bytes` bytes; `None` for operations to which nccl-tests gives
    /// none: barriers, scans and neighbourhoods.
    pub fn bus_traffic(self, bytes: u64, ranks: u32) -> Option<BusTraffic> {
        let others = f64::from(ranks.checked_sub(1).filter(|others| *others > 0)?) / f64::from(ranks);
        let whole = match (self.sends.blocks, self.receives.blocks) {
            (Blocks::None | Blocks::Neighbours, _) | (_, Blocks::Neighbours) => return None,
            (Blocks::Ranks, _) | (_, Blocks::Ranks) => bytes.saturating_mul(ranks.into()),
            _ => bytes,
        };
        let factor = match (self.reduces, self.sends, self.receives) {
            (ReductionScope::Inclusive | ReductionScope::Exclusive, ..) => return None,
            (ReductionScope::All, _, Share { who: Participants::Everyone, blocks: Blocks::One })
                if self.sends.blocks == Blocks::One =>
            {
                2.0 * others
            }
            (ReductionScope::All, _, Share { who: Participants::Root, .. }) => 1.0,
            (ReductionScope::Nothing, Share { who: Participants::Root, blocks: Blocks::One }, _) => 1.0,
            _ => others,
        };
        (whole > 0).then_some(BusTraffic { bytes: whole, factor })
    }

    /// Returns the ranks that may pass `MPI_IN_PLACE` (MPI 4.1, 6.2.3), which then send from their receive buffer.
    pub const fn in_place(self) -> Option<Participants> {
        match (self.sends.who, self.receives.who) {
            (Participants::Everyone, Participants::Everyone)
                if self.has_messages() && !self.has_neighbours() =>
            {
                Some(Participants::Everyone)
            }
            (Participants::Root, Participants::Everyone) | (Participants::Everyone, Participants::Root) => {
                Some(Participants::Root)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_place_follows_the_standard() {
        let everyone = [
            DataFlow::ALLGATHER,
            DataFlow::ALLTOALL,
            DataFlow::ALLREDUCE,
            DataFlow::REDUCE_SCATTER,
            DataFlow::SCAN,
        ];
        assert!(everyone.iter().all(|flow| flow.in_place() == Some(Participants::Everyone)));
        let root = [DataFlow::GATHER, DataFlow::SCATTER, DataFlow::REDUCE];
        assert!(root.iter().all(|flow| flow.in_place() == Some(Participants::Root) && flow.is_rooted()));
        let never =
            [DataFlow::BARRIER, DataFlow::BCAST, DataFlow::NEIGHBOR_ALLGATHER, DataFlow::NEIGHBOR_ALLTOALL];
        assert!(never.iter().all(|flow| flow.in_place().is_none()));
        assert!(DataFlow::BCAST.is_rooted() && !DataFlow::BARRIER.is_rooted());
    }

    #[test]
    fn bus_bandwidths_are_those_of_nccl_tests() {
        let of = |flow: DataFlow| flow.bus_traffic(100, 4).map(|bus| (bus.bytes, bus.factor));
        assert_eq!(of(DataFlow::ALLREDUCE), Some((100, 1.5)));
        assert_eq!(of(DataFlow::REDUCE_SCATTER), Some((100, 0.75)));
        for flow in [
            DataFlow::ALLGATHER,
            DataFlow::ALLTOALL.vector(),
            DataFlow::REDUCE_SCATTER_BLOCK,
            DataFlow::GATHER,
            DataFlow::SCATTER,
        ] {
            assert_eq!(of(flow), Some((400, 0.75)));
        }
        for flow in [DataFlow::BCAST, DataFlow::REDUCE] {
            assert_eq!(of(flow), Some((100, 1.0)));
        }
        for flow in [
            DataFlow::BARRIER,
            DataFlow::SCAN,
            DataFlow::EXSCAN,
            DataFlow::NEIGHBOR_ALLGATHER,
            DataFlow::NEIGHBOR_ALLTOALL,
        ] {
            assert_eq!(of(flow), None);
        }
        assert_eq!(DataFlow::ALLREDUCE.bus_traffic(100, 1), None);
    }
}
