//! The tasks of a pipeline's processes.

use std::{io, net::IpAddr, os::fd::OwnedFd, time::Duration};

use ombx_core::error::{Error, Result};

use super::{memory::WaitMode, shape::Shape, storage::Storage, worker_cpus::WorkerCpus};
use crate::{
    control::{Channel, Execution, Kind, Message, Token},
    socket::SocketOptions,
};

/// Number of texts of a task that belong to the plan.
const PLAN_TEXTS: usize = 4;

/// What all processes of a pipeline know.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Returns a number for the variant, the node, the phase and the peer.
    fn numbers(self) -> [u32; 4] {
        match self {
            Role::Node { node } => [0, node, 0, 0],
            Role::Phase { node, phase } => [1, node, phase, 0],
            Role::Sender { node, phase, peer } => [2, node, phase, peer],
            Role::Receiver { node, phase, peer } => [3, node, phase, peer],
        }
    }

    /// Returns whether a pipeline of this shape has the role.
    fn is_of(self, shape: &Shape) -> bool {
        let [_, node, phase, peer] = self.numbers();
        node < shape.nodes && phase < shape.phases && peer < shape.nodes
    }
}

impl Plan {
    /// Returns the message that gives a process its role.
    pub(super) fn task(&self, role: Role) -> Message {
        let Shape { nodes, phases, buffers, block } = self.shape;
        Message::new(Kind::Task)
            .numbers(role.numbers().map(u64::from))
            .numbers([nodes, phases, buffers].map(u64::from))
            .numbers([block, self.workers as u64, self.wait_mode as u64])
            .numbers([self.socket.buffer.unwrap_or(0) as u64, self.earlier_workers.into()])
            .numbers([self.status.map_or(0, |interval| interval.as_nanos() as u64)])
            .texts([self.source.text(), self.sink.text()])
            .texts([self.socket.congestion.clone().unwrap_or_default(), self.cpus.text().to_owned()])
    }

    /// Returns the task of a node, with the token and the address on which it listens: `None` for every address.
    pub(super) fn node_task(&self, node: u32, token: Token, at: Option<IpAddr>) -> Message {
        let at = at.map_or(String::new(), |at| at.to_string());
        self.task(Role::Node { node }).texts([token.to_string(), at])
    }

    /// Returns the texts of a task after those of the plan.
    pub(super) fn further_texts(message: &mut Message) -> Vec<String> {
        message.texts.split_off(PLAN_TEXTS.min(message.texts.len()))
    }

    /// Reads a task; fails if it exceeds the limits of a pipeline.
    pub(super) fn of(message: &Message) -> Result<(Plan, Role)> {
        // A number that does not fit exceeds every limit.
        let number = |at| u32::try_from(message.number(at)).unwrap_or(u32::MAX);
        let (node, phase, peer) = (number(1), number(2), number(3));
        let role = match message.number(0) {
            0 => Role::Node { node },
            1 => Role::Phase { node, phase },
            2 => Role::Sender { node, phase, peer },
            _ => Role::Receiver { node, phase, peer },
        };
        let shape =
            Shape { nodes: number(4), phases: number(5), buffers: number(6), block: message.number(7) };
        if message.kind != Kind::Task
            || message.numbers.len() < 13
            || message.texts.len() < PLAN_TEXTS
            || !shape.is_within_limits()
            || !role.is_of(&shape)
        {
            return Err(Error::fabric("a process of a pipeline received an invalid task"));
        }
        let workers = if message.number(8) == 0 { Execution::Process } else { Execution::Thread };
        let wait_mode = if message.number(9) == 0 { WaitMode::Sleep } else { WaitMode::Spin };
        let socket = SocketOptions {
            buffer: Some(message.number(10) as usize).filter(|bytes| *bytes > 0),
            congestion: Some(message.text(2).to_owned()).filter(|name| !name.is_empty()),
            ..SocketOptions::default()
        };
        let plan = Plan {
            shape,
            workers,
            wait_mode,
            source: Storage::parse(message.text(0))?,
            sink: Storage::parse(message.text(1))?,
            socket,
            cpus: WorkerCpus::parse(message.text(3))?,
            earlier_workers: number(11),
            status: Some(Duration::from_nanos(message.number(12))).filter(|interval| !interval.is_zero()),
        };
        Ok((plan, role))
    }
}

/// Where a node reads a part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the source's file.
    Source = 0,
    /// In the block that the last phase has kept.
    Kept = 1,
}

/// Function that runs a role: receives its task from the channel and returns when the role has ended.
pub(super) type RunRole = fn(Channel, Execution) -> io::Result<()>;

/// Task of a process, as it was received.
pub(super) struct Assignment {
    pub(super) plan: Plan,
    pub(super) name: String,
    /// Texts of the task after those of the plan.
    pub(super) texts: Vec<String>,
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

#[cfg(test)]
mod tests {
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
            assert_eq!(Plan::of(&plan.task(role)).unwrap(), (plan.clone(), role));
        }
        assert!(Plan::of(&Message::new(Kind::Ready)).is_err());
        assert!(Plan::of(&Message::new(Kind::Task)).is_err());
    }
}
