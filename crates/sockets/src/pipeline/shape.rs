//! How a pipeline is laid out: nodes, phases, buffers and blocks; how many processes that makes, and where every block goes.

use ombx_core::{
    error::{Error, Result},
    unit::Bytes,
};

/// The most nodes: the ends of a phase's connections go to it in one message, of at most 253.
pub(super) const MOST_NODES: u32 = 100;
/// The most phases.
pub(super) const MOST_PHASES: u32 = 1000;
/// The most buffers in a run; each has a time stamp at every end.
pub(super) const MOST_BUFFERS: u32 = 1 << 20;
/// The most processes, whatever the system would allow: far beyond any machine that could still measure.
const MOST_PROCESSES: u64 = 4096;
/// Buffers of a phase: one is filled while the other is drained.
pub(super) const SLOTS: u32 = 2;

/// Nodes, phases, buffers and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) nodes: u32,
    pub(super) phases: u32,
    /// Buffers that pass through every node in one run.
    pub(super) buffers: u32,
    /// Bytes of a block; a buffer has one for each node.
    pub(super) block: u64,
}

/// A block at the source: whose, and which of its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) node: u32,
    pub(super) block: u32,
}

impl Shape {
    /// N (1 + F + 2 N (F - 1)): on each node one, one for each phase, and a sender or a receiver at each end of each connection.
    pub(super) fn processes(&self) -> u64 {
        let (n, f) = (u64::from(self.nodes), u64::from(self.phases));
        n * (1 + f + 2 * n * (f - 1))
    }

    /// Bytes that leave the sources in one run, and arrive at the sinks.
    pub(super) fn bytes(&self) -> u64 {
        self.section().saturating_mul(u64::from(self.nodes))
    }

    /// Bytes of one node's part of a file.
    pub(super) fn section(&self) -> u64 {
        self.buffer().saturating_mul(u64::from(self.buffers))
    }

    /// Bytes of a buffer without padding.
    pub(super) fn buffer(&self) -> u64 {
        self.block.saturating_mul(u64::from(self.nodes))
    }

    /// Where a block of a node's buffer lies in a file: node by node, buffer by buffer, block by block.
    pub(super) fn place(&self, node: u32, buffer: u32, block: u32) -> u64 {
        u64::from(node) * self.section() + u64::from(buffer) * self.buffer() + u64::from(block) * self.block
    }

    /// Which block of the same buffer at the source arrives as block `block` of node `node`'s sink.
    ///
    /// Between two phases block j of node a goes to node j, where it becomes block a. So every step from phase to phase
    /// transposes nodes and blocks; two steps restore them.
    pub(super) fn origin(&self, node: u32, block: u32) -> Origin {
        match (self.phases - 1).is_multiple_of(2) {
            true => Origin { node, block },
            false => Origin { node: block, block: node },
        }
    }

    /// Bytes from one block in memory to the next: each begins on a cache line of its own.
    pub(super) fn stride(&self) -> usize {
        self.block.next_multiple_of(64) as usize
    }

    /// Bytes of the buffers of all phases of one node.
    pub(super) fn memory_of_a_node(&self) -> u64 {
        let block = self.block.saturating_add(63) / 64 * 64;
        [self.nodes, SLOTS, self.phases].iter().fold(block, |sum, part| sum.saturating_mul(u64::from(*part)))
    }

    /// Whether it is one that a user could ask for; what comes from another process need not be.
    pub(super) fn is_within_limits(&self) -> bool {
        (1..=MOST_NODES).contains(&self.nodes)
            && (2..=MOST_PHASES).contains(&self.phases)
            && (1..=MOST_BUFFERS).contains(&self.buffers)
            && self.block > 0
    }

    /// Refuses what no machine could run; `local` nodes are on this one, and `threads` stand for processes.
    pub(super) fn check(&self, local: u32, threads: bool) -> Result<()> {
        let processes = if threads { u64::from(self.nodes) } else { self.processes() };
        let here = processes / u64::from(self.nodes) * u64::from(local);
        let limit = process_limit().unwrap_or(u64::MAX).min(MOST_PROCESSES);
        if here > limit {
            return Err(Error::usage(format!(
                "{} nodes of {} phases are {here} processes on this host, more than {limit}: take fewer nodes or phases, or --threads",
                self.nodes, self.phases
            )));
        }
        let need = self.memory_of_a_node().saturating_mul(u64::from(local));
        let free = ombx_core::system::environment::available_memory().unwrap_or(u64::MAX);
        if need > free {
            return Err(Error::usage(format!(
                "the buffers of {} nodes, {} phases and blocks of {} take {} MiB on this host, which has {} MiB free: take smaller blocks",
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

/// How many processes this user may have; none for root, whom the kernel does not hold to it.
fn process_limit() -> Option<u64> {
    let bound = !rustix::process::geteuid().is_root();
    bound.then(|| rustix::process::getrlimit(rustix::process::Resource::Nproc).current).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn shape(nodes: u32, phases: u32) -> Shape {
        Shape { nodes, phases, buffers: 4, block: 100 }
    }

    #[test]
    fn processes_are_counted_as_the_original_counts_them() {
        // 3 nodes, which start 9 phases, and these 18 senders and 18 receivers.
        assert_eq!(shape(3, 3).processes(), 3 + 45);
        assert_eq!(shape(1, 2).processes(), 5);
        assert_eq!(shape(4, 4).processes(), 4 * (1 + 4 + 24));
    }

    #[test]
    fn following_a_block_from_phase_to_phase_leads_to_its_origin() {
        for (nodes, phases) in [(1, 2), (2, 2), (3, 3), (3, 4), (5, 7), (4, 2)] {
            for (node, block) in (0..nodes).flat_map(|n| (0..nodes).map(move |b| (n, b))) {
                // Forward, one connection at a time.
                let (mut at, mut is) = (node, block);
                for _ in 1..phases {
                    (at, is) = (is, at);
                }
                assert_eq!(shape(nodes, phases).origin(at, is), Origin { node, block });
            }
        }
    }

    #[test]
    fn every_place_in_a_file_is_taken_once() {
        let shape = Shape { nodes: 3, phases: 2, buffers: 4, block: 10 };
        let all = |n| (0..4).flat_map(move |i| (0..3).map(move |b| shape.place(n, i, b)));
        let places: BTreeSet<u64> = (0..3).flat_map(all).collect();
        assert_eq!(places, (0..36).map(|i| i * 10).collect());
        assert_eq!(shape.bytes(), 360);
    }

    #[test]
    fn what_no_machine_has_is_refused_without_overflow() {
        let huge = Shape { nodes: 2, phases: 3, buffers: 2, block: u64::MAX };
        assert!(huge.check(2, false).unwrap_err().to_string().contains("smaller blocks"));
        assert!(shape(100, 900).check(100, false).unwrap_err().to_string().contains("processes"));
        assert!(shape(3, 3).check(3, false).is_ok());
    }
}
