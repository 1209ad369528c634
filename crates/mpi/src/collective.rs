//! Collective operations: the data flow and the three calls of each, and a rank's buffers and arguments for them.

mod arguments;
pub(crate) mod broadcast;
mod call;
mod data_flow;
mod local;
mod operation;
mod part;
pub(crate) mod reduction;
mod staging;
mod topology;

pub use self::{
    call::*,
    data_flow::{Blocks, DataFlow, Participants, ReductionScope, Share},
    local::LocalReduction,
    operation::{Operation, Options, Requests},
    part::{Gaps, Part},
    topology::{Neighbours, neighbours},
};
