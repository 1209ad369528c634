//! The table of collective operations. Each line registers a blocking, a nonblocking and a persistent benchmark. A second table has
//! the operations that several threads of each rank call.

use ombx_core::benchmark::Benchmark;
use ombx_mpi::collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Call, DataFlow, Exscan,
    Gather, Gatherv, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv,
    NeighborAlltoallw, Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
};

use crate::entry::{blocking, by_threads, nonblocking, persistent};

/// One line of the table: an operation and its three benchmarks.
#[derive(Debug)]
pub struct Operation {
    /// Name without family and mode, as in `collective.NAME`.
    pub name: &'static str,
    /// Data that each rank sends and receives, and whether there is a root.
    pub flow: DataFlow,
    /// `collective.NAME`.
    pub blocking: Benchmark,
    /// `collective.iNAME`, which also reports overlap with computation.
    pub nonblocking: Benchmark,
    /// `collective.NAME_persistent`.
    pub persistent: Benchmark,
}

impl Operation {
    /// Returns the blocking, nonblocking and persistent benchmarks of this operation.
    pub const fn benchmarks(&self) -> [&Benchmark; 3] {
        [&self.blocking, &self.nonblocking, &self.persistent]
    }
}

/// Builds a line from the type of the operation, its name, its sentence and its OSU titles.
///
/// The titles are those of the blocking and the nonblocking OSU program, without "OSU MPI" and "Latency Test".
/// `persistent` says that there is a persistent OSU program; its title is the blocking one with "Persistent".
macro_rules! operation {
    (
        $operation:ident, $name:literal, $about:literal
        $(, osu: $blocking:literal, $nonblocking:literal $(, $mode:ident)?)?
    ) => {
        Operation {
            name: $name,
            flow: <$operation as Call>::FLOW,
            blocking: blocking::<$operation>(concat!("collective.", $name), $about)
                $(.osu(concat!("osu_", $name), concat!("OSU MPI ", $blocking, " Latency Test")))?,
            nonblocking: nonblocking::<$operation>(
                concat!("collective.i", $name),
                concat!($about, ", and its overlap with computation"),
            )
            $(.osu(concat!("osu_i", $name), concat!("OSU MPI ", $nonblocking, " Latency Test")))?,
            persistent: persistent::<$operation>(
                concat!("collective.", $name, "_persistent"),
                concat!($about, ", as a persistent request"),
            )
            $($(.osu(
                concat!("osu_", $name, "_", stringify!($mode)),
                concat!("OSU MPI ", $blocking, " Persistent Latency Test"),
            ))?)?,
        }
    };
}

/// Defines [`OPERATIONS`] and registers the benchmarks of each line.
macro_rules! table {
    ($($line:expr,)*) => {
        /// All collective operations, in alphabetical order.
        pub static OPERATIONS: &[Operation] = &[$($line),*];
        $(
            ombx_core::inventory::submit! { $line.blocking }
            ombx_core::inventory::submit! { $line.nonblocking }
            ombx_core::inventory::submit! { $line.persistent }
        )*
    };
}

#[rustfmt::skip]
table! {
    operation!(Allgather, "allgather", "every rank's block to every rank",
        osu: "Allgather", "Non-blocking Allgather", persistent),
    operation!(Allgatherv, "allgatherv", "every rank's block to every rank, with counts and displacements",
        osu: "Allgatherv", "Non-blocking Allgatherv", persistent),
    operation!(Allreduce, "allreduce", "the sum of every rank's block to every rank",
        osu: "Allreduce", "Non-blocking Allreduce", persistent),
    operation!(Alltoall, "alltoall", "a block from every rank to every rank",
        osu: "All-to-All Personalized Exchange", "Non-blocking All-to-All", persistent),
    operation!(Alltoallv, "alltoallv", "a block from every rank to every rank, with counts and displacements",
        osu: "All-to-Allv Personalized Exchange", "Non-blocking All-to-Allv Personalized Exchange", persistent),
    operation!(Alltoallw, "alltoallw",
        "a block from every rank to every rank, with counts, displacements and datatypes",
        osu: "All-to-Allw Personalized Exchange", "Non-blocking All-to-Allw Personalized Exchange", persistent),
    operation!(Barrier, "barrier", "barrier over all ranks",
        osu: "Barrier", "Non-blocking Barrier", persistent),
    operation!(Bcast, "bcast", "the root's block to every rank",
        osu: "Broadcast", "Non-Blocking Broadcast", persistent),
    operation!(Exscan, "exscan", "the sum of the blocks of the ranks before each rank"),
    operation!(Gather, "gather", "every rank's block to the root",
        osu: "Gather", "Non-blocking Gather", persistent),
    operation!(Gatherv, "gatherv", "every rank's block to the root, with counts and displacements",
        osu: "Gatherv", "Non-blocking Gatherv", persistent),
    operation!(NeighborAllgather, "neighbor_allgather", "every rank's block to its neighbours",
        osu: "Neighborhood Allgather", "Non-blocking Neighborhood Allgather"),
    operation!(NeighborAllgatherv, "neighbor_allgatherv",
        "every rank's block to its neighbours, with counts and displacements",
        osu: "Neighborhood Allgatherv", "Non-blocking Neighborhood Allgatherv"),
    operation!(NeighborAlltoall, "neighbor_alltoall", "a block from every rank to each neighbour",
        osu: "Neighborhood Alltoall", "Non-blocking Neighborhood Alltoall"),
    operation!(NeighborAlltoallv, "neighbor_alltoallv",
        "a block from every rank to each neighbour, with counts and displacements",
        osu: "Neighborhood All-to-Allv", "Non-blocking Neighborhood Alltoallv"),
    operation!(NeighborAlltoallw, "neighbor_alltoallw",
        "a block from every rank to each neighbour, with counts, displacements and datatypes",
        osu: "All-to-Allw Personalized Exchange", "Non-blocking Neighborhood Alltoallw"),
    operation!(Reduce, "reduce", "the sum of every rank's block to the root",
        osu: "Reduce", "Non-blocking Reduce", persistent),
    operation!(ReduceScatter, "reduce_scatter", "the sum of every rank's block to every rank in parts",
        osu: "Reduce_scatter", "Non-blocking Reduce_scatter", persistent),
    operation!(ReduceScatterBlock, "reduce_scatter_block", "the sums of every rank's blocks, one to each rank",
        osu: "Reduce_scatter_block", "Non-blocking Reduce_scatter_block"),
    operation!(Scan, "scan", "the sum of the blocks of the ranks up to each rank"),
    operation!(Scatter, "scatter", "a block from the root to every rank",
        osu: "Scatter", "Non-blocking Scatter", persistent),
    operation!(Scatterv, "scatterv", "a block from the root to every rank, with counts and displacements",
        osu: "Scatterv", "Non-blocking Scatterv", persistent),
}

/// Builds the entry of an operation that several threads of each rank call at the same time.
macro_rules! threaded {
    ($operation:ident, $name:literal, $about:literal) => {
        by_threads::<$operation>(
            concat!("collective.", $name, "_mt"),
            concat!($about, ", on several threads at once"),
        )
    };
}

/// Registers the benchmarks of each line.
macro_rules! threads {
    ($($line:expr,)*) => {
        $(ombx_core::inventory::submit! { $line })*
    };
}

threads! {
    threaded!(Allgather, "allgather", "every rank's block to every rank"),
    threaded!(Allreduce, "allreduce", "the sum of every rank's block to every rank"),
    threaded!(Alltoall, "alltoall", "a block from every rank to every rank"),
    threaded!(Barrier, "barrier", "barrier over all ranks"),
    threaded!(Bcast, "bcast", "the root's block to every rank"),
    threaded!(Reduce, "reduce", "the sum of every rank's block to the root"),
}
