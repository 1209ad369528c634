//! Nonblocking operations, a line for each.

use ombx_mpi::collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Exscan, Gather,
    Gatherv, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw,
    Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
};

use crate::entry::nonblocking;

ombx_core::inventory::submit! { nonblocking::<Allgather>("collective.iallgather", "every rank's block to every rank, and how much of it hides behind computing").osu("osu_iallgather", "OSU MPI Non-blocking Allgather Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Allgatherv>("collective.iallgatherv", "every rank's block to every rank, counts and places given, and how much of it hides behind computing").osu("osu_iallgatherv", "OSU MPI Non-blocking Allgatherv Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Allreduce>("collective.iallreduce", "the sum of every rank's block to every rank, and how much of it hides behind computing").osu("osu_iallreduce", "OSU MPI Non-blocking Allreduce Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Alltoall>("collective.ialltoall", "a block from every rank to every rank, and how much of it hides behind computing").osu("osu_ialltoall", "OSU MPI Non-blocking All-to-All Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Alltoallv>("collective.ialltoallv", "a block from every rank to every rank, counts and places given, and how much of it hides behind computing").osu("osu_ialltoallv", "OSU MPI Non-blocking All-to-Allv Personalized Exchange Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Alltoallw>("collective.ialltoallw", "a block from every rank to every rank, counts, places and types given, and how much of it hides behind computing").osu("osu_ialltoallw", "OSU MPI Non-blocking All-to-Allw Personalized Exchange Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Barrier>("collective.ibarrier", "until every rank has come, and how much of it hides behind computing").osu("osu_ibarrier", "OSU MPI Non-blocking Barrier Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Bcast>("collective.ibcast", "the root's block to every rank, and how much of it hides behind computing").osu("osu_ibcast", "OSU MPI Non-Blocking Broadcast Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Exscan>("collective.iexscan", "the sum of the blocks of the ranks before each rank, and how much of it hides behind computing") }
ombx_core::inventory::submit! { nonblocking::<Gather>("collective.igather", "every rank's block to the root, and how much of it hides behind computing").osu("osu_igather", "OSU MPI Non-blocking Gather Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Gatherv>("collective.igatherv", "every rank's block to the root, counts and places given, and how much of it hides behind computing").osu("osu_igatherv", "OSU MPI Non-blocking Gatherv Latency Test") }
ombx_core::inventory::submit! { nonblocking::<NeighborAllgather>("collective.ineighbor_allgather", "every rank's block to its neighbours, and how much of it hides behind computing").osu("osu_ineighbor_allgather", "OSU MPI Non-blocking Neighborhood Allgather Latency Test") }
ombx_core::inventory::submit! { nonblocking::<NeighborAllgatherv>("collective.ineighbor_allgatherv", "every rank's block to its neighbours, counts and places given, and how much of it hides behind computing").osu("osu_ineighbor_allgatherv", "OSU MPI Non-blocking Neighborhood Allgatherv Latency Test") }
ombx_core::inventory::submit! { nonblocking::<NeighborAlltoall>("collective.ineighbor_alltoall", "a block from every rank to each neighbour, and how much of it hides behind computing").osu("osu_ineighbor_alltoall", "OSU MPI Non-blocking Neighborhood Alltoall Latency Test") }
ombx_core::inventory::submit! { nonblocking::<NeighborAlltoallv>("collective.ineighbor_alltoallv", "a block from every rank to each neighbour, counts and places given, and how much of it hides behind computing").osu("osu_ineighbor_alltoallv", "OSU MPI Non-blocking Neighborhood Alltoallv Latency Test") }
ombx_core::inventory::submit! { nonblocking::<NeighborAlltoallw>("collective.ineighbor_alltoallw", "a block from every rank to each neighbour, counts, places and types given, and how much of it hides behind computing").osu("osu_ineighbor_alltoallw", "OSU MPI Non-blocking Neighborhood Alltoallw Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Reduce>("collective.ireduce", "the sum of every rank's block to the root, and how much of it hides behind computing").osu("osu_ireduce", "OSU MPI Non-blocking Reduce Latency Test") }
ombx_core::inventory::submit! { nonblocking::<ReduceScatter>("collective.ireduce_scatter", "the sum of every rank's block to every rank in parts, and how much of it hides behind computing").osu("osu_ireduce_scatter", "OSU MPI Non-blocking Reduce_scatter Latency Test") }
ombx_core::inventory::submit! { nonblocking::<ReduceScatterBlock>("collective.ireduce_scatter_block", "the sums of every rank's blocks, one to each rank, and how much of it hides behind computing").osu("osu_ireduce_scatter_block", "OSU MPI Non-blocking Reduce_scatter_block Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Scan>("collective.iscan", "the sum of the blocks of the ranks up to each rank, and how much of it hides behind computing") }
ombx_core::inventory::submit! { nonblocking::<Scatter>("collective.iscatter", "a block from the root to every rank, and how much of it hides behind computing").osu("osu_iscatter", "OSU MPI Non-blocking Scatter Latency Test") }
ombx_core::inventory::submit! { nonblocking::<Scatterv>("collective.iscatterv", "a block from the root to every rank, counts and places given, and how much of it hides behind computing").osu("osu_iscatterv", "OSU MPI Non-blocking Scatterv Latency Test") }
