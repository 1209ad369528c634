//! Collective operations: what each moves, its three calls, and a rank's buffers and arguments for them.

mod arguments;
mod call;
mod operation;
mod part;
mod shape;
mod topology;

pub use self::{
    call::{
        Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Call, Exscan,
        Gather, Gatherv, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv,
        NeighborAlltoallw, Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
        persistent_calls_exist,
    },
    operation::{Choices, Operation},
    part::{Part, Place},
    shape::{Blocks, Reduces, Shape, Share, Who},
    topology::{Neighbours, Topology},
};
