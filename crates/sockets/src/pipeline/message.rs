//! Messages between the processes of a pipeline.

use std::{io, net::IpAddr, os::fd::OwnedFd, time::Duration};

use ombx_core::error::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{
    control::{Channel, Execution, Token},
    pipeline::{
        Failure,
        memory::WaitMode,
        run::{NodeRun, NodeStatus, RunId, Wrong},
        shape::PipelineShape,
        storage::Storage,
        worker_cpus::WorkerCpus,
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

/// What all processes of a pipeline know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) shape: PipelineShape,
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
    fn is_of(self, shape: &PipelineShape) -> bool {
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
    pub(super) fn of_test(shape: PipelineShape) -> Plan {
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

#[cfg(test)]
mod task_tests {
    use ombx_core::codec;

    use super::*;

    #[test]
    fn a_task_is_decoded_as_encoded() {
        let shape = PipelineShape { nodes: 3, phases: 4, buffers: 5, block: 1 << 40 };
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
        let plan = Plan::of_test(PipelineShape { nodes: u32::MAX, ..shape });
        assert!(Task { plan, role: Role::Node { node: 0 }, entrance: None }.checked().is_err());
    }
}
