//! Blocking operations, a line for each.

use ombx_mpi::collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Exscan, Gather,
    Gatherv, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw,
    Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
};

use crate::entry::blocking;

ombx_core::inventory::submit! { blocking::<Allgather>("collective.allgather", "every rank's block to every rank").osu("osu_allgather", "OSU MPI Allgather Latency Test") }
ombx_core::inventory::submit! { blocking::<Allgatherv>("collective.allgatherv", "every rank's block to every rank, counts and places given").osu("osu_allgatherv", "OSU MPI Allgatherv Latency Test") }
ombx_core::inventory::submit! { blocking::<Allreduce>("collective.allreduce", "the sum of every rank's block to every rank").osu("osu_allreduce", "OSU MPI Allreduce Latency Test") }
ombx_core::inventory::submit! { blocking::<Alltoall>("collective.alltoall", "a block from every rank to every rank").osu("osu_alltoall", "OSU MPI All-to-All Personalized Exchange Latency Test") }
ombx_core::inventory::submit! { blocking::<Alltoallv>("collective.alltoallv", "a block from every rank to every rank, counts and places given").osu("osu_alltoallv", "OSU MPI All-to-Allv Personalized Exchange Latency Test") }
ombx_core::inventory::submit! { blocking::<Alltoallw>("collective.alltoallw", "a block from every rank to every rank, counts, places and types given").osu("osu_alltoallw", "OSU MPI All-to-Allw Personalized Exchange Latency Test") }
ombx_core::inventory::submit! { blocking::<Barrier>("collective.barrier", "until every rank has come").osu("osu_barrier", "OSU MPI Barrier Latency Test") }
ombx_core::inventory::submit! { blocking::<Bcast>("collective.bcast", "the root's block to every rank").osu("osu_bcast", "OSU MPI Broadcast Latency Test").above_one_way() }
ombx_core::inventory::submit! { blocking::<Exscan>("collective.exscan", "the sum of the blocks of the ranks before each rank") }
ombx_core::inventory::submit! { blocking::<Gather>("collective.gather", "every rank's block to the root").osu("osu_gather", "OSU MPI Gather Latency Test") }
ombx_core::inventory::submit! { blocking::<Gatherv>("collective.gatherv", "every rank's block to the root, counts and places given").osu("osu_gatherv", "OSU MPI Gatherv Latency Test") }
ombx_core::inventory::submit! { blocking::<NeighborAllgather>("collective.neighbor_allgather", "every rank's block to its neighbours").osu("osu_neighbor_allgather", "OSU MPI Neighborhood Allgather Latency Test") }
ombx_core::inventory::submit! { blocking::<NeighborAllgatherv>("collective.neighbor_allgatherv", "every rank's block to its neighbours, counts and places given").osu("osu_neighbor_allgatherv", "OSU MPI Neighborhood Allgatherv Latency Test") }
ombx_core::inventory::submit! { blocking::<NeighborAlltoall>("collective.neighbor_alltoall", "a block from every rank to each neighbour").osu("osu_neighbor_alltoall", "OSU MPI Neighborhood Alltoall Latency Test") }
ombx_core::inventory::submit! { blocking::<NeighborAlltoallv>("collective.neighbor_alltoallv", "a block from every rank to each neighbour, counts and places given").osu("osu_neighbor_alltoallv", "OSU MPI Neighborhood All-to-Allv Latency Test") }
ombx_core::inventory::submit! { blocking::<NeighborAlltoallw>("collective.neighbor_alltoallw", "a block from every rank to each neighbour, counts, places and types given").osu("osu_neighbor_alltoallw", "OSU MPI All-to-Allw Personalized Exchange Latency Test") }
ombx_core::inventory::submit! { blocking::<Reduce>("collective.reduce", "the sum of every rank's block to the root").osu("osu_reduce", "OSU MPI Reduce Latency Test") }
ombx_core::inventory::submit! { blocking::<ReduceScatter>("collective.reduce_scatter", "the sum of every rank's block to every rank in parts").osu("osu_reduce_scatter", "OSU MPI Reduce_scatter Latency Test") }
ombx_core::inventory::submit! { blocking::<ReduceScatterBlock>("collective.reduce_scatter_block", "the sums of every rank's blocks, one to each rank").osu("osu_reduce_scatter_block", "OSU MPI Reduce_scatter_block Latency Test") }
ombx_core::inventory::submit! { blocking::<Scan>("collective.scan", "the sum of the blocks of the ranks up to each rank") }
ombx_core::inventory::submit! { blocking::<Scatter>("collective.scatter", "a block from the root to every rank").osu("osu_scatter", "OSU MPI Scatter Latency Test") }
ombx_core::inventory::submit! { blocking::<Scatterv>("collective.scatterv", "a block from the root to every rank, counts and places given").osu("osu_scatterv", "OSU MPI Scatterv Latency Test") }
