//! Messages between the processes of a pipeline.

use std::{io, net::IpAddr, os::fd::OwnedFd, time::Duration};

use ombx_core::{
    error::{Error, Result},
    unit::Bytes,
};
use ombx_host::limits::{FreeMemory, Limits};
use serde::{Deserialize, Serialize};

use crate::{
    control::{Channel, Execution, Token},
    pipeline::{
        Failure,
        ends::{RunId, WorkerCpus, Wrong},
        memory::WaitMode,
        phase::Storage,
    },
    socket::SocketOptions,
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

/// What all processes of a pipeline know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) shape: Shape,
    /// How phases, senders and receivers run.
    pub(super) workers: Execution,
    pub(super) wait_mode: WaitMode,
    pub(super) source: Storage,
    pub(super) sink: Storage,
    /// Options of the connections.
    pub(super) socket: SocketOptions,
    pub(super) cpus: WorkerCpus,
    /// Number of senders and receivers of earlier nodes on the same host.
    pub(super) earlier_workers: u32,
    /// Interval at which nodes report their progress; `None` if they do not.
    pub(super) status: Option<Duration>,
}

/// The role of a process. Nodes and phases are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    Node {
        node: u32,
    },
    Phase {
        node: u32,
        phase: u32,
    },
    /// Sends block `peer` of every buffer to node `peer`.
    Sender {
        node: u32,
        phase: u32,
        peer: u32,
    },
    /// Receives block `peer` of every buffer from node `peer`.
    Receiver {
        node: u32,
        phase: u32,
        peer: u32,
    },
}

impl Role {
    /// Returns the name for `ps` and error messages. It counts phases from 1.
    pub(super) fn name(self) -> String {
        match self {
            Role::Node { node } => format!("node {node}"),
            Role::Phase { node, phase } => format!("phase {} of node {node}", phase + 1),
            Role::Sender { node, phase, peer } => {
                format!("sender to node {peer} in phase {} of node {node}", phase + 1)
            }
            Role::Receiver { node, phase, peer } => {
                format!("receiver from node {peer} in phase {} of node {node}", phase + 1)
            }
        }
    }

    /// Returns whether a pipeline of this shape has the role.
    fn is_of(self, shape: &Shape) -> bool {
        let (node, phase, peer) = match self {
            Role::Node { node } => (node, 0, 0),
            Role::Phase { node, phase } => (node, phase, 0),
            Role::Sender { node, phase, peer } | Role::Receiver { node, phase, peer } => (node, phase, peer),
        };
        node < shape.nodes && phase < shape.phases && peer < shape.nodes
    }
}

/// What a process gets when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) plan: Plan,
    pub(super) role: Role,
    /// Of a node: how it listens.
    pub(super) entrance: Option<Entrance>,
}

/// How a node listens for other nodes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Entrance {
    pub(super) token: Token,
    /// Address; `None` for every address.
    pub(super) at: Option<IpAddr>,
}

impl Task {
    /// Returns the task if it is within the limits of a pipeline.
    pub(super) fn checked(self) -> Result<Task> {
        if self.plan.shape.is_within_limits() && self.role.is_of(&self.plan.shape) {
            Ok(self)
        } else {
            Err(Error::fabric("a process of a pipeline received an invalid task"))
        }
    }
}

/// Function that runs a role: receives its task from the channel and returns when the role has ended.
pub(super) type RunRole = fn(Channel, Execution) -> io::Result<()>;

/// Task of a process, as it was received.
pub(super) struct Assignment {
    pub(super) plan: Plan,
    pub(super) name: String,
    pub(super) entrance: Option<Entrance>,
    pub(super) files: Vec<OwnedFd>,
    /// The channel to the process that started this one.
    pub(super) channel: Channel,
    /// How this role runs.
    pub(super) execution: Execution,
    /// Runs the roles that this one starts as threads.
    pub(super) run_role: RunRole,
}

#[cfg(test)]
impl Plan {
    /// Returns the plan of a pipeline of threads from memory to memory.
    pub(super) fn of_test(shape: Shape) -> Plan {
        Plan {
            shape,
            workers: Execution::Thread,
            wait_mode: WaitMode::Sleep,
            source: Storage::Memory,
            sink: Storage::Memory,
            socket: SocketOptions::default(),
            cpus: WorkerCpus::Any,
            earlier_workers: 0,
            status: None,
        }
    }
}

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
pub(super) struct Shape {
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

impl Shape {
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
mod task_tests {
    use ombx_core::codec;

    use super::*;

    #[test]
    fn a_task_is_decoded_as_encoded() {
        let shape = Shape { nodes: 3, phases: 4, buffers: 5, block: 1 << 40 };
        let plan = Plan {
            wait_mode: WaitMode::Spin,
            sink: Storage::File("/tmp/a:b c".into()),
            socket: SocketOptions {
                buffer: Some(1 << 20),
                congestion: Some("reno".into()),
                ..SocketOptions::default()
            },
            cpus: WorkerCpus::parse("0-3").unwrap(),
            earlier_workers: 36,
            status: Some(Duration::from_millis(500)),
            ..Plan::of_test(shape)
        };
        for role in [
            Role::Node { node: 2 },
            Role::Phase { node: 1, phase: 3 },
            Role::Sender { node: 2, phase: 0, peer: 1 },
            Role::Receiver { node: 0, phase: 3, peer: 2 },
        ] {
            let task = Task { plan: plan.clone(), role, entrance: None };
            let received: Task = codec::decode(&codec::encode(&task)).unwrap();
            let received = received.checked().unwrap();
            assert_eq!((received.plan, received.role), (plan.clone(), role));
        }
        for role in [Role::Node { node: 3 }, Role::Sender { node: 0, phase: 4, peer: 0 }] {
            assert!(Task { plan: plan.clone(), role, entrance: None }.checked().is_err());
        }
        let plan = Plan::of_test(Shape { nodes: u32::MAX, ..shape });
        assert!(Task { plan, role: Role::Node { node: 0 }, entrance: None }.checked().is_err());
    }
}

#[cfg(test)]
mod shape_tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shape(nodes: u32, phases: u32) -> Shape {
        Shape { nodes, phases, buffers: 4, block: 100 }
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
        let shape = Shape { nodes: 3, phases: 2, buffers: 4, block: 10 };
        let all = |n| (0..4).flat_map(move |i| (0..3).map(move |b| shape.offset(n, i, b)));
        let places: BTreeSet<u64> = (0..3).flat_map(all).collect();
        assert_eq!(places, (0..36).map(|i| i * 10).collect());
        assert_eq!(shape.bytes(), 360);
    }

    #[test]
    fn impossible_shapes_are_rejected_without_overflow() {
        let huge = Shape { nodes: 2, phases: 3, buffers: 2, block: u64::MAX };
        assert!(huge.check(2, Execution::Process).unwrap_err().to_string().contains("smaller blocks"));
        assert!(
            shape(100, 900).check(100, Execution::Process).unwrap_err().to_string().contains("processes")
        );
        assert!(shape(3, 3).check(3, Execution::Process).is_ok());
    }
}
