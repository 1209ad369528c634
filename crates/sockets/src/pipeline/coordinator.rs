//! The coordinator of a pipeline: starts the nodes, times the runs, and finds the cause of a failure.

use std::{
    ops::Range,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::host_ns,
};

use super::{
    ends::{Data, Wrong},
    failure::{Cause, Failure},
    hosts::Hosts,
    member::{self, SUBCOMMAND},
    role::run_role,
    shape::Shape,
    task::{Place, Plan, Role},
};
use crate::{
    control::{
        Execution, Kind, Message, ProcessGroup, Started, Token,
        process::{self, Event},
    },
    socket::Deadline,
};

/// Time limit for starting the processes; each further hundred of them adds the same.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// After the first failure, the coordinator waits this long for the failure that caused it.
const CAUSE_TIMEOUT: Duration = Duration::from_millis(700);
/// Bytes of a block that a node sends at once, to find the first wrong one.
const PART: u64 = 1 << 20;
/// Bytes per second below which a run times out.
const MIN_RATE: u64 = 500_000;

/// A pipeline whose processes are connected.
pub(super) struct Pipeline {
    shape: Shape,
    names: Vec<String>,
    group: ProcessGroup,
    events: Receiver<Event>,
    run: u32,
    rejected: Vec<u64>,
    one_clock: bool,
    can_check: bool,
    #[cfg(test)]
    failing_check: Option<u32>,
}

/// The times of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The nodes, by number.
    pub(super) nodes: Vec<NodeRun>,
    /// From the first signal to a first phase until every last phase was done. If nodes have different clocks: from the
    /// coordinator's start message until all nodes have answered.
    pub(super) total_ns: u64,
}

/// The times of one node in a run, on the clock of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Progress of one node in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeStatus {
    /// Buffers that have left the source.
    pub(super) left: u64,
    /// Buffers that have arrived at the sink.
    pub(super) arrived: u64,
    /// Nanoseconds since the start of the first phase.
    pub(super) elapsed_ns: u64,
}

impl NodeStatus {
    fn of(message: &Message) -> NodeStatus {
        let [left, arrived, elapsed_ns] = [0, 1, 2].map(|at| message.number(at));
        NodeStatus { left, arrived, elapsed_ns }
    }
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

    pub(super) fn of(Message { numbers, .. }: Message, shape: &Shape) -> Result<NodeRun> {
        let (phases, buffers) = (shape.phases as usize, shape.buffers as usize);
        if numbers.len() != 4 + 2 * phases + 2 * buffers {
            return Err(Error::fabric("a node sent an incomplete report"));
        }
        let (times, rest) = numbers.split_at(4);
        let (waits, stamps) = rest.split_at(2 * phases);
        let (left, arrived) = stamps.split_at(buffers);
        Ok(NodeRun {
            began: times[0],
            ended: times[1],
            end_work: [times[2], times[3]],
            waits: waits.as_chunks().0.to_vec(),
            left: left.to_vec(),
            arrived: arrived.to_vec(),
        })
    }
}

impl Pipeline {
    /// Starts all processes and waits until they are connected. `nodes` says how the nodes on this host run.
    pub(super) fn start(plan: &Plan, hosts: &Hosts, nodes: Execution) -> Result<Pipeline> {
        let shape = plan.shape;
        let token = Token::random()?;
        let (sender, events) = mpsc::channel();
        let mut group = ProcessGroup::new(move |event| drop(sender.send(event)));
        let mut names = Vec::new();
        for node in 0..shape.nodes {
            let mut name = Role::Node { node }.name();
            let started = match hosts.of(node) {
                None => member::start(nodes, name.clone(), run_role)?,
                Some(host) => {
                    let command = process::command(Some((&hosts.shell, host)), SUBCOMMAND, &[&name])?;
                    name = format!("{name} on {host}");
                    Started::with_pipes(command, name.clone())?
                }
            };
            let plan = Plan { earlier_workers: hosts.earlier(node) * shape.workers(), ..plan.clone() };
            started.send(&plan.node_task(node, token, hosts.listen_address()), &[])?;
            group.add(started)?;
            names.push(name);
        }
        let rejected = vec![0; shape.nodes as usize];
        let mut pipeline = Pipeline {
            shape,
            names,
            group,
            events,
            run: 0,
            rejected,
            one_clock: hosts.are_here(),
            can_check: false,
            #[cfg(test)]
            failing_check: None,
        };
        let limit = Deadline::after(START_TIMEOUT.saturating_mul(1 + (shape.processes() / 100) as u32));
        let ports = pipeline.wait_for_all(Kind::Port, limit)?;
        let peers = (0..).zip(&ports).map(|(node, message)| hosts.address(node, message.number(0)));
        let peers = peers.collect::<Result<Vec<_>>>()?;
        pipeline.group.broadcast(&Message::new(Kind::Peers).texts(peers));
        // Nodes may write their source files first.
        let ready = pipeline.wait_for_all(Kind::Ready, pipeline.limit())?;
        pipeline.can_check = ready.iter().all(|message| message.number(0) == 1);
        if !plan.source.is_memory() {
            pipeline.exchange_checksums()?;
        }
        Ok(pipeline)
    }

    /// Lets the check of a run compare its data with that of the next run.
    #[cfg(test)]
    pub(super) fn fail_check_of(&mut self, run: u32) {
        self.failing_check = Some(run);
    }

    /// Tells every node the checksums of the blocks that should arrive, from the files of all sources.
    fn exchange_checksums(&mut self) -> Result<()> {
        let shape = self.shape;
        self.group.broadcast(&Message::new(Kind::Checksums));
        let found = self.wait_for_all(Kind::Checksums, self.limit())?;
        let blocks = u64::from(shape.buffers) * u64::from(shape.nodes);
        if found.iter().any(|message| message.numbers.len() as u64 != blocks) {
            return Err(Error::fabric("a node sent an incomplete list of checksums"));
        }
        for node in 0..shape.nodes {
            let arriving = |slot: u64| {
                let origin = shape.origin(node, (slot % u64::from(shape.nodes)) as u32);
                found[origin.node as usize].number(shape.slot_at(origin, slot) as usize)
            };
            let expected = Message::new(Kind::Expect).numbers((0..blocks).map(arriving));
            self.group.send(node as usize, &expected);
        }
        self.wait_for_all(Kind::Ready, self.limit()).map(drop)
    }

    /// Returns whether the data that arrived can be compared.
    pub(super) fn can_check(&self) -> bool {
        self.can_check
    }

    /// Returns how many connections the nodes have rejected.
    pub(super) fn rejected(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// Returns the name of a node.
    pub(super) fn name(&self, node: u32) -> &str {
        &self.names[node as usize]
    }

    /// Returns the number of the last run.
    pub(super) fn last_run(&self) -> u32 {
        self.run
    }

    /// Runs all buffers through all phases once. `on_status` is called with what nodes report meanwhile.
    pub(super) fn run(&mut self, data: Data, mut on_status: impl FnMut(u32, NodeStatus)) -> Result<Run> {
        self.run += 1;
        let run = [self.run.into(), data as u64];
        self.group.broadcast(&Message::new(Kind::Prepare).numbers(run));
        self.wait_for_all(Kind::Prepared, self.limit())?;
        let started = host_ns();
        self.group.broadcast(&Message::new(Kind::Start).numbers(run));
        let all = 0..self.names.len();
        let done = self.wait_with_status(Kind::Done, all, self.limit(), &mut on_status)?;
        let answered = host_ns();
        let nodes = done.into_iter().map(|message| NodeRun::of(message, &self.shape));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        let began = nodes.iter().map(|node| node.began).min().unwrap_or(0);
        let ended = nodes.iter().map(|node| node.ended).max().unwrap_or(0);
        let (from, to) = if self.one_clock { (began, ended) } else { (started, answered) };
        Ok(Run { nodes, total_ns: to.saturating_sub(from) })
    }

    /// Lets every node compare the data of the last run; returns the first node with a wrong byte, and the byte.
    pub(super) fn check(&mut self, data: Data) -> Result<Option<(u32, Wrong)>> {
        let run = self.run;
        #[cfg(test)]
        let run = run + u32::from(self.failing_check == Some(run));
        self.group.broadcast(&Message::new(Kind::Check).numbers([run.into(), data as u64]));
        let found = self.wait_for_all(Kind::Checked, self.limit())?;
        let mut wrong =
            (0..).zip(found).filter_map(|(node, m)| Some((node, Wrong::try_from(m.numbers).ok()?)));
        match wrong.next() {
            Some((node, [slot, _, expected, actual])) if expected == actual => {
                self.locate(node, slot).map(|wrong| Some((node, wrong)))
            }
            wrong => Ok(wrong),
        }
    }

    /// Returns the first wrong byte of a block that a node has kept, because its checksum differs from that of the source.
    fn locate(&mut self, node: u32, slot: u64) -> Result<Wrong> {
        let Shape { nodes, block, .. } = self.shape;
        let origin = self.shape.origin(node, (slot % u64::from(nodes)) as u32);
        let sent = self.shape.slot_at(origin, slot);
        for offset in (0..block).step_by(PART as usize) {
            let length = PART.min(block - offset);
            let expected = self.part(origin.node, [Place::Source as u64, sent, offset, length])?;
            let found = self.part(node, [Place::Kept as u64, slot, offset, length])?;
            let pairs = expected.data.iter().zip(&found.data);
            if let Some((byte, (expected, actual))) = (offset..).zip(pairs).find(|(_, (e, f))| e != f) {
                return Ok([slot, byte, (*expected).into(), (*actual).into()]);
            }
        }
        let name = &self.names[origin.node as usize];
        Err(Error::storage(format!("the source file of {name} changed while the pipeline ran")))
    }

    /// Returns a part of a block of one node.
    fn part(&mut self, node: u32, request: [u64; 4]) -> Result<Message> {
        let node = node as usize;
        self.group.send(node, &Message::new(Kind::Part).numbers(request));
        let mut messages = self.wait_for(Kind::Part, node..node + 1, self.limit())?;
        messages.pop().ok_or_else(|| Error::fabric("a node sent no part of a block"))
    }

    /// Returns the time limit for a step of a run.
    fn limit(&self) -> Deadline {
        let bytes = self.shape.bytes().saturating_mul(u64::from(self.shape.phases));
        Deadline::after(START_TIMEOUT + Duration::from_secs(bytes / MIN_RATE))
    }

    /// Waits for a message of this kind from every node; returns them in the nodes' order.
    fn wait_for_all(&mut self, kind: Kind, limit: Deadline) -> Result<Vec<Message>> {
        self.wait_for(kind, 0..self.names.len(), limit)
    }

    /// Waits for a message of this kind from some nodes; returns them in the nodes' order.
    fn wait_for(&mut self, kind: Kind, nodes: Range<usize>, limit: Deadline) -> Result<Vec<Message>> {
        self.wait_with_status(kind, nodes, limit, &mut |_, _| {})
    }

    /// As `wait_for`; calls `on_status` with what nodes report meanwhile.
    fn wait_with_status(
        &mut self,
        kind: Kind,
        nodes: Range<usize>,
        limit: Deadline,
        on_status: &mut dyn FnMut(u32, NodeStatus),
    ) -> Result<Vec<Message>> {
        let mut messages: Vec<Option<Message>> = nodes.clone().map(|_| None).collect();
        while messages.iter().any(Option::is_none) {
            match self.events.recv_timeout(limit.left().unwrap_or_default()) {
                Ok(Event::Message(node, message)) if message.kind == kind && nodes.contains(&node) => {
                    messages[node - nodes.start] = Some(message);
                }
                Ok(Event::Message(node, message)) if message.kind == Kind::Rejected => {
                    self.rejected[node] = message.number(0);
                }
                Ok(Event::Message(node, message)) if message.kind == Kind::Status => {
                    on_status(node as u32, NodeStatus::of(&message));
                }
                Ok(event) => return Err(self.explain(self.failure(&event))),
                Err(RecvTimeoutError::Timeout) => {
                    let names = &self.names[nodes.clone()];
                    let silent = messages.iter().zip(names).find(|(message, _)| message.is_none());
                    let name = silent.map_or("a node", |(_, name)| name);
                    let seconds = limit.limit().as_secs();
                    return Err(Error::fabric(format!("{name} did not answer within {seconds} s")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::fabric("all nodes are gone")),
            }
        }
        Ok(messages.into_iter().flatten().collect())
    }

    fn failure(&self, event: &Event) -> Failure {
        match event {
            Event::Exited(_, exit) => Failure::exited(exit),
            Event::Message(_, message) if message.kind == Kind::Failure => Failure::of(message),
            Event::Message(node, message) => {
                let (name, kind) = (&self.names[*node], message.kind);
                Error::fabric(format!("{name} sent an unexpected message ({kind:?})")).into()
            }
        }
    }

    /// Returns the cause of a failure. When a process dies, the processes that are connected to it may report first.
    fn explain(&self, mut failure: Failure) -> Error {
        let limit = Deadline::after(CAUSE_TIMEOUT);
        while failure.cause < Cause::Root {
            let Ok(event) = self.events.recv_timeout(limit.left().unwrap_or_default()) else { break };
            let is_failure = !matches!(&event, Event::Message(_, message) if message.kind != Kind::Failure);
            let next = is_failure.then(|| self.failure(&event));
            failure = next.filter(|next| next.cause > failure.cause).unwrap_or(failure);
        }
        failure.error
    }
}
