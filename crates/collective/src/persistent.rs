//! Persistent operations, a line for each.

use ombx_mpi::collective::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Exscan, Gather,
    Gatherv, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv, NeighborAlltoallw,
    Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
};

use crate::entry::persistent;

ombx_core::inventory::submit! { persistent::<Allgather>("collective.allgather_persistent", "every rank's block to every rank, by a request made once").osu("osu_allgather_persistent", "OSU MPI Allgather Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Allgatherv>("collective.allgatherv_persistent", "every rank's block to every rank, counts and places given, by a request made once").osu("osu_allgatherv_persistent", "OSU MPI Allgatherv Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Allreduce>("collective.allreduce_persistent", "the sum of every rank's block to every rank, by a request made once").osu("osu_allreduce_persistent", "OSU MPI Allreduce Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Alltoall>("collective.alltoall_persistent", "a block from every rank to every rank, by a request made once").osu("osu_alltoall_persistent", "OSU MPI All-to-All Personalized Exchange Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Alltoallv>("collective.alltoallv_persistent", "a block from every rank to every rank, counts and places given, by a request made once").osu("osu_alltoallv_persistent", "OSU MPI All-to-Allv Personalized Exchange Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Alltoallw>("collective.alltoallw_persistent", "a block from every rank to every rank, counts, places and types given, by a request made once").osu("osu_alltoallw_persistent", "OSU MPI All-to-Allw Personalized Exchange Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Barrier>("collective.barrier_persistent", "until every rank has come, by a request made once").osu("osu_barrier_persistent", "OSU MPI Barrier Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Bcast>("collective.bcast_persistent", "the root's block to every rank, by a request made once").osu("osu_bcast_persistent", "OSU MPI Broadcast Persistent Latency Test").above_one_way() }
ombx_core::inventory::submit! { persistent::<Exscan>("collective.exscan_persistent", "the sum of the blocks of the ranks before each rank, by a request made once") }
ombx_core::inventory::submit! { persistent::<Gather>("collective.gather_persistent", "every rank's block to the root, by a request made once").osu("osu_gather_persistent", "OSU MPI Gather Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Gatherv>("collective.gatherv_persistent", "every rank's block to the root, counts and places given, by a request made once").osu("osu_gatherv_persistent", "OSU MPI Gatherv Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<NeighborAllgather>("collective.neighbor_allgather_persistent", "every rank's block to its neighbours, by a request made once") }
ombx_core::inventory::submit! { persistent::<NeighborAllgatherv>("collective.neighbor_allgatherv_persistent", "every rank's block to its neighbours, counts and places given, by a request made once") }
ombx_core::inventory::submit! { persistent::<NeighborAlltoall>("collective.neighbor_alltoall_persistent", "a block from every rank to each neighbour, by a request made once") }
ombx_core::inventory::submit! { persistent::<NeighborAlltoallv>("collective.neighbor_alltoallv_persistent", "a block from every rank to each neighbour, counts and places given, by a request made once") }
ombx_core::inventory::submit! { persistent::<NeighborAlltoallw>("collective.neighbor_alltoallw_persistent", "a block from every rank to each neighbour, counts, places and types given, by a request made once") }
ombx_core::inventory::submit! { persistent::<Reduce>("collective.reduce_persistent", "the sum of every rank's block to the root, by a request made once").osu("osu_reduce_persistent", "OSU MPI Reduce Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<ReduceScatter>("collective.reduce_scatter_persistent", "the sum of every rank's block to every rank in parts, by a request made once").osu("osu_reduce_scatter_persistent", "OSU MPI Reduce_scatter Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<ReduceScatterBlock>("collective.reduce_scatter_block_persistent", "the sums of every rank's blocks, one to each rank, by a request made once") }
ombx_core::inventory::submit! { persistent::<Scan>("collective.scan_persistent", "the sum of the blocks of the ranks up to each rank, by a request made once") }
ombx_core::inventory::submit! { persistent::<Scatter>("collective.scatter_persistent", "a block from the root to every rank, by a request made once").osu("osu_scatter_persistent", "OSU MPI Scatter Persistent Latency Test") }
ombx_core::inventory::submit! { persistent::<Scatterv>("collective.scatterv_persistent", "a block from the root to every rank, counts and places given, by a request made once").osu("osu_scatterv_persistent", "OSU MPI Scatterv Persistent Latency Test") }
