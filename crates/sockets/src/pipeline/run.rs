//! A run: its number and data, its times on a node, and the first byte that arrived wrong.

use ombx_core::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::pipeline::shape::PipelineShape;

/// Number and data of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunId {
    pub(super) number: u32,
    pub(super) data: Data,
}

/// The data of a source in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Data {
    /// The content of its two buffers, again and again. Nothing is written or compared during the run.
    Repeated,
    /// A new pattern in each buffer. The sink compares every byte as it arrives.
    Fresh,
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
    pub(super) fn complete(self, shape: &PipelineShape) -> Result<NodeRun> {
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

/// First wrong byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrong {
    /// Number of the block in the node's section.
    pub(super) slot: u64,
    /// Byte in the block.
    pub(super) byte: u64,
    /// Expected value.
    pub(super) expected: u8,
    /// Value that arrived; equal to the expected one if only a checksum differed.
    pub(super) actual: u8,
}
