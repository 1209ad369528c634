//! The shape of a pipeline: the numbers that define it, and its limits.

use ombx_core::{
    error::{Error, Result},
    unit::Bytes,
};
use ombx_host::limits::{FreeMemory, Limits};
use serde::{Deserialize, Serialize};

use crate::control::Execution;

/// Maximum number of nodes: one message carries the memory and all connections of a phase, at most 253 open files.
pub(super) const MAX_NODES: u32 = 100;
/// Maximum number of phases.
pub(super) const MAX_PHASES: u32 = 1000;
/// Maximum number of buffers in a run; each has a time stamp at every end.
pub(super) const MAX_BUFFERS: u32 = 1 << 20;
/// Maximum number of processes on one host, if the system allows more.
const MAX_PROCESSES: u64 = 4096;
/// Number of buffers of a phase: one is filled while the other is drained.
pub(super) const SLOTS: u32 = 2;

/// The numbers that define a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PipelineShape {
    pub(super) nodes: u32,
    pub(super) phases: u32,
    /// Buffers that pass through every node in one run.
    pub(super) buffers: u32,
    /// Bytes of a block; a buffer has one block for each node.
    pub(super) block: u64,
}

/// A block at the source: its node, and its position in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) node: u32,
    pub(super) block: u32,
}

impl PipelineShape {
    /// Returns N (1 + F + 2 N (F - 1)): each node has a process, one for each phase, and a sender or receiver for each end of its
    /// connections.
    pub(super) fn processes(&self) -> u64 {
        let (n, f) = (u64::from(self.nodes), u64::from(self.phases));
        n * (1 + f + 2 * n * (f - 1))
    }

    /// Returns the number of started processes if workers run in this way.
    pub(super) fn started_processes(&self, workers: Execution) -> u64 {
        match workers {
            Execution::Process => self.processes(),
            Execution::Thread => self.nodes.into(),
        }
    }

    /// Returns the number of senders and receivers of a node.
    pub(super) fn workers(&self) -> u32 {
        2 * self.nodes * (self.phases - 1)
    }

    /// Returns the number of a sender among the senders and receivers of its node.
    pub(super) fn sender(&self, phase: u32, peer: u32) -> u32 {
        2 * self.nodes * phase + peer
    }

    /// Returns the number of a receiver among the senders and receivers of its node. The first phase has none.
    pub(super) fn receiver(&self, phase: u32, peer: u32) -> u32 {
        self.nodes * (2 * phase - 1) + peer
    }

    /// Returns the bytes that leave the sources in one run.
    pub(super) fn bytes(&self) -> u64 {
        self.section().saturating_mul(u64::from(self.nodes))
    }

    /// Returns the bytes of one node's part of a file.
    pub(super) fn section(&self) -> u64 {
        self.buffer().saturating_mul(u64::from(self.buffers))
    }

    /// Returns the bytes of a buffer without padding.
    pub(super) fn buffer(&self) -> u64 {
        self.block.saturating_mul(u64::from(self.nodes))
    }

    /// Returns the offset of a block in a file, which holds nodes, in each its buffers, in each its blocks.
    pub(super) fn offset(&self, node: u32, buffer: u32, block: u32) -> u64 {
        u64::from(node) * self.section() + u64::from(buffer) * self.buffer() + u64::from(block) * self.block
    }

    /// Returns the block at the source that arrives as block `block` of the same buffer at the sink of `node`.
    ///
    /// Between two phases, block j of node a goes to node j and becomes block a. So each step transposes nodes and blocks, and
    /// two steps restore them.
    pub(super) fn origin(&self, node: u32, block: u32) -> Origin {
        if (self.phases - 1).is_multiple_of(2) {
            Origin { node, block }
        } else {
            Origin { node: block, block: node }
        }
    }

    /// Returns the number of a block in the section of its origin, from its number in the section where it arrives.
    pub(super) fn slot_at(&self, origin: Origin, slot: u64) -> u64 {
        slot - slot % u64::from(self.nodes) + u64::from(origin.block)
    }

    /// Returns the bytes from one block in memory to the next: each starts on a cache line.
    pub(super) fn stride(&self) -> usize {
        self.block.next_multiple_of(64) as usize
    }

    /// Returns the bytes of the buffers of all phases of one node, with a block of each phase that is kept.
    pub(super) fn memory_of_a_node(&self) -> u64 {
        let block = self.block.saturating_add(63) / 64 * 64;
        [self.nodes * SLOTS + 1, self.phases]
            .iter()
            .fold(block, |sum, part| sum.saturating_mul(u64::from(*part)))
    }

    /// Returns whether a user could choose this shape. Checks shapes that come from another process.
    pub(super) fn is_within_limits(&self) -> bool {
        (1..=MAX_NODES).contains(&self.nodes)
            && (2..=MAX_PHASES).contains(&self.phases)
            && (1..=MAX_BUFFERS).contains(&self.buffers)
            && self.block > 0
    }

    /// Fails if this host cannot run its `local` nodes: too many processes, or too little memory.
    pub(super) fn check(&self, local: u32, workers: Execution) -> Result<()> {
        let processes = self.started_processes(workers);
        let here = processes / u64::from(self.nodes) * u64::from(local);
        let limit = Limits::here().processes.unwrap_or(u64::MAX).min(MAX_PROCESSES);
        if here > limit {
            return Err(Error::usage(format!(
                "{} nodes of {} phases need {here} processes on this host, which allows {limit}; choose \
                 fewer nodes or phases, or --workers threads",
                self.nodes, self.phases
            )));
        }
        let need = self.memory_of_a_node().saturating_mul(u64::from(local));
        let free = FreeMemory::here().map_or(u64::MAX, |free| free.bytes);
        if need > free {
            return Err(Error::usage(format!(
                "the buffers of {} nodes, {} phases and blocks of {} need {} MiB on this host, which has \
                 {} MiB free; choose smaller blocks",
                self.nodes,
                self.phases,
                Bytes(self.block),
                need >> 20,
                free >> 20
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn shape(nodes: u32, phases: u32) -> PipelineShape {
        PipelineShape { nodes, phases, buffers: 4, block: 100 }
    }

    #[test]
    fn processes_are_counted() {
        // 3 nodes start 9 phases, which start 18 senders and 18 receivers.
        assert_eq!(shape(3, 3).processes(), 3 + 45);
        assert_eq!(shape(1, 2).processes(), 5);
        assert_eq!(shape(4, 4).processes(), 4 * (1 + 4 + 24));
    }

    #[test]
    fn senders_and_receivers_are_numbered_once() {
        let shape = shape(3, 4);
        let senders = (0..3).flat_map(|phase| (0..3).map(move |peer| shape.sender(phase, peer)));
        let receivers = (1..4).flat_map(|phase| (0..3).map(move |peer| shape.receiver(phase, peer)));
        let all: BTreeSet<u32> = senders.chain(receivers).collect();
        assert_eq!(all, (0..shape.workers()).collect());
    }

    #[test]
    fn following_a_block_from_phase_to_phase_leads_to_its_origin() {
        for (nodes, phases) in [(1, 2), (2, 2), (3, 3), (3, 4), (5, 7), (4, 2)] {
            for (node, block) in (0..nodes).flat_map(|n| (0..nodes).map(move |b| (n, b))) {
                // Follows one connection at a time.
                let (mut at, mut is) = (node, block);
                for _ in 1..phases {
                    (at, is) = (is, at);
                }
                assert_eq!(shape(nodes, phases).origin(at, is), Origin { node, block });
            }
        }
    }

    #[test]
    fn every_offset_in_a_file_is_used_once() {
        let shape = PipelineShape { nodes: 3, phases: 2, buffers: 4, block: 10 };
        let all = |n| (0..4).flat_map(move |i| (0..3).map(move |b| shape.offset(n, i, b)));
        let places: BTreeSet<u64> = (0..3).flat_map(all).collect();
        assert_eq!(places, (0..36).map(|i| i * 10).collect());
        assert_eq!(shape.bytes(), 360);
    }

    #[test]
    fn impossible_shapes_are_rejected_without_overflow() {
        let huge = PipelineShape { nodes: 2, phases: 3, buffers: 2, block: u64::MAX };
        assert!(huge.check(2, Execution::Process).unwrap_err().to_string().contains("smaller blocks"));
        assert!(
            shape(100, 900).check(100, Execution::Process).unwrap_err().to_string().contains("processes")
        );
        assert!(shape(3, 3).check(3, Execution::Process).is_ok());
    }
}
