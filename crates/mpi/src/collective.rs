//! Collective operations: the data flow and the three calls of each, and a rank's buffers and arguments for them.

mod arguments;
pub(crate) mod broadcast;
mod call;
mod data_flow;
mod operation;
mod part;
mod topology;

pub use self::{
    call::{
        Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Alltoallw, Barrier, Bcast, Call, Exscan,
        Gather, Gatherv, NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv,
        NeighborAlltoallw, Reduce, ReduceScatter, ReduceScatterBlock, Scan, Scatter, Scatterv,
        persistent_calls_exist,
    },
    data_flow::{Blocks, DataFlow, Participants, ReductionScope, Share},
    operation::{Operation, Options},
    part::Part,
    topology::{Neighbours, Topology},
};
