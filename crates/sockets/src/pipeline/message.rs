//! Messages between the processes of a pipeline.

use ombx_core::error::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{
    ends::{RunId, Wrong},
    failure::Failure,
    shape::Shape,
    task::Task,
};

/// A message. The coordinator starts nodes, a node starts phases, and a phase starts senders and receivers; each talks to those that it
/// has started.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// To a process that has just started.
    Task(Box<Task>),
    /// From a phase, a sender or a receiver that has just started.
    Ready,
    /// From any process, passed on to the coordinator.
    Failure(Failure),
    /// From a node: the port on which it listens.
    Port(u16),
    /// To a node: the addresses of all nodes.
    Peers(Vec<String>),
    /// From a node: how many connections it has rejected.
    Rejected(u64),
    /// From a node: its phases are ready.
    Connected {
        /// Whether the data that arrives at its sink can be compared.
        can_check: bool,
    },
    /// To a node: compute the checksums of the source's blocks.
    ComputeChecksums,
    /// From a node: these checksums.
    Checksums(Vec<u64>),
    /// To a node, passed on to its last phase: the checksums of the blocks that should arrive.
    Expect(Vec<u64>),
    /// From a node: it has passed the checksums on.
    Expecting,
    /// To a node.
    Prepare(RunId),
    /// From a node: the run is prepared.
    Prepared,
    /// To a node.
    Start(RunId),
    /// From a node during a run.
    Status(NodeStatus),
    /// From a node: the run is over.
    Done(NodeRun),
    /// To a node: compare the data that arrived.
    Check(RunId),
    /// From a node: the first wrong byte, if any.
    Checked(Option<Wrong>),
    /// To a node: send a part of a block.
    SendPart(PartRequest),
    /// From a node: this part.
    Part(#[serde(with = "serde_bytes")] Vec<u8>),
}

/// Part of a block that the coordinator asks for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct PartRequest {
    pub(super) place: Place,
    /// Number of the block in the node's section.
    pub(super) slot: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Where a node reads a part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    /// In the source's file.
    Source,
    /// In the block that the last phase has kept.
    Kept,
}

/// The times of one node in a run, on the clock of its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeRun {
    /// Start of the first phase.
    pub(super) began: u64,
    /// End of the last phase.
    pub(super) ended: u64,
    /// Nanoseconds in which the first phase filled buffers, and in which the last phase read them.
    pub(super) end_work: [u64; 2],
    /// Nanoseconds that each phase waited for data, and for space.
    pub(super) waits: Vec<[u64; 2]>,
    /// Time when each buffer began to leave the source.
    pub(super) left: Vec<u64>,
    /// Time when each buffer was complete at the sink.
    pub(super) arrived: Vec<u64>,
}

impl NodeRun {
    /// Returns the nanoseconds of the run.
    pub(super) fn elapsed_ns(&self) -> u64 {
        self.ended.saturating_sub(self.began).max(1)
    }

    /// Returns the nanoseconds of each buffer: from when it began to leave the source of this node until the buffer of this
    /// number was complete at its sink.
    pub(super) fn buffer_ns(&self) -> impl Iterator<Item = u64> {
        self.left.iter().zip(&self.arrived).map(|(left, arrived)| arrived.saturating_sub(*left))
    }

    /// Returns the times if they are of every phase and every buffer.
    pub(super) fn complete(self, shape: &Shape) -> Result<NodeRun> {
        let buffers = shape.buffers as usize;
        let [waits, left, arrived] = [self.waits.len(), self.left.len(), self.arrived.len()];
        if waits == shape.phases as usize && left == buffers && arrived == buffers {
            Ok(self)
        } else {
            Err(Error::fabric("a node sent an incomplete report"))
        }
    }
}

/// Progress of one node in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeStatus {
    /// Buffers that have left the source.
    pub(super) left: u64,
    /// Buffers that have arrived at the sink.
    pub(super) arrived: u64,
    /// Nanoseconds since the start of the first phase.
    pub(super) elapsed_ns: u64,
}
