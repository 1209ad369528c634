//! The coordinator of a pipeline: starts the nodes, times the runs, and finds the cause of a failure.

use std::{
    ops::Range,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use ombx_core::{
    clock::host_ns,
    error::{Error, Result},
};

use super::{
    member::{self, SUBCOMMAND},
    message::{Message, PartRequest, Place},
    role::run_role,
    run::{Data, NodeRun, NodeStatus, RunId, Wrong},
};
use crate::{
    control::{
        Execution, ProcessGroup, Started, Token,
        process::{self, ProcessEvent},
    },
    pipeline::{
        Cause, Failure, Hosts,
        message::{Entrance, Plan, Role, Task},
        shape::PipelineShape,
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

/// Returns what a message of one kind says, or the message if it is another one.
macro_rules! expected {
    ($message:pat => $said:expr) => {
        |message| match message {
            $message => Ok($said),
            other => Err(other),
        }
    };
}

/// A pipeline whose processes are connected.
pub(super) struct Pipeline {
    shape: PipelineShape,
    names: Vec<String>,
    group: ProcessGroup<Message>,
    events: Receiver<ProcessEvent<Message>>,
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
            let started = match hosts.host(node) {
                None => member::start(nodes, name.clone(), run_role)?,
                Some(host) => {
                    let command = process::command(Some((&hosts.shell, host)), SUBCOMMAND, &[&name])?;
                    name = format!("{name} on {host}");
                    Started::with_pipes(command, name.clone())?
                }
            };
            let plan = Plan { earlier_workers: hosts.earlier(node) * shape.workers(), ..plan.clone() };
            let entrance = Some(Entrance { token, at: hosts.listen_address() });
            let task = Task { plan, role: Role::Node { node }, entrance };
            started.send(&Message::Task(Box::new(task)), &[])?;
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
        let ports = pipeline.wait_for_all(limit, expected!(Message::Port(port) => port))?;
        let peers = (0..).zip(&ports).map(|(node, port)| hosts.address(node, *port));
        let peers = peers.collect::<Result<Vec<_>>>()?;
        pipeline.group.broadcast(&Message::Peers(peers));
        // Nodes may write their source files first.
        let can_check = pipeline
            .wait_for_all(pipeline.limit(), expected!(Message::Connected { can_check } => can_check))?;
        pipeline.can_check = can_check.into_iter().all(|can_check| can_check);
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
        self.group.broadcast(&Message::ComputeChecksums);
        let found = self.wait_for_all(self.limit(), expected!(Message::Checksums(checksums) => checksums))?;
        let blocks = u64::from(shape.buffers) * u64::from(shape.nodes);
        if found.iter().any(|checksums| checksums.len() as u64 != blocks) {
            return Err(Error::fabric("a node sent an incomplete list of checksums"));
        }
        for node in 0..shape.nodes {
            let arriving = |slot: u64| {
                let origin = shape.origin(node, (slot % u64::from(shape.nodes)) as u32);
                found[origin.node as usize][shape.slot_at(origin, slot) as usize]
            };
            let expected = Message::Expect((0..blocks).map(arriving).collect());
            self.group.send(node as usize, &expected);
        }
        let expecting = self.wait_for_all(self.limit(), expected!(Message::Expecting => ()));
        expecting.map(drop)
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
        let run = RunId { number: self.run, data };
        self.group.broadcast(&Message::Prepare(run));
        self.wait_for_all(self.limit(), expected!(Message::Prepared => ()))?;
        let started = host_ns();
        self.group.broadcast(&Message::Start(run));
        let all = 0..self.names.len();
        let times = expected!(Message::Done(run) => run);
        let done = self.wait_with_status(all, self.limit(), times, &mut on_status)?;
        let answered = host_ns();
        let nodes = done.into_iter().map(|run| run.complete(&self.shape));
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
        self.group.broadcast(&Message::Check(RunId { number: run, data }));
        let found = self.wait_for_all(self.limit(), expected!(Message::Checked(wrong) => wrong))?;
        let mut wrong = (0..).zip(found).filter_map(|(node, wrong)| Some((node, wrong?)));
        match wrong.next() {
            Some((node, Wrong { slot, expected, actual, .. })) if expected == actual => {
                self.locate(node, slot).map(|wrong| Some((node, wrong)))
            }
            wrong => Ok(wrong),
        }
    }

    /// Returns the first wrong byte of a block that a node has kept, because its checksum differs from that of the source.
    fn locate(&mut self, node: u32, slot: u64) -> Result<Wrong> {
        let PipelineShape { nodes, block, .. } = self.shape;
        let origin = self.shape.origin(node, (slot % u64::from(nodes)) as u32);
        let sent = self.shape.slot_at(origin, slot);
        for offset in (0..block).step_by(PART as usize) {
            let length = PART.min(block - offset);
            let source = PartRequest { place: Place::Source, slot: sent, offset, length };
            let expected = self.part(origin.node, source)?;
            let found = self.part(node, PartRequest { place: Place::Kept, slot, ..source })?;
            let pairs = expected.iter().zip(&found);
            if let Some((byte, (expected, actual))) = (offset..).zip(pairs).find(|(_, (e, f))| e != f) {
                return Ok(Wrong { slot, byte, expected: *expected, actual: *actual });
            }
        }
        let name = &self.names[origin.node as usize];
        Err(Error::storage(format!("the source file of {name} changed while the pipeline ran")))
    }

    /// Returns a part of a block of one node.
    fn part(&mut self, node: u32, request: PartRequest) -> Result<Vec<u8>> {
        let node = node as usize;
        self.group.send(node, &Message::SendPart(request));
        let part = expected!(Message::Part(bytes) => bytes);
        let mut parts = self.wait_with_status(node..node + 1, self.limit(), part, &mut |_, _| {})?;
        parts.pop().ok_or_else(|| Error::fabric("a node sent no part of a block"))
    }

    /// Returns the time limit for a step of a run.
    fn limit(&self) -> Deadline {
        let bytes = self.shape.bytes().saturating_mul(u64::from(self.shape.phases));
        Deadline::after(START_TIMEOUT + Duration::from_secs(bytes / MIN_RATE))
    }

    /// Waits for a message from every node; returns what `pick` finds in them, in the nodes' order. `pick` returns other messages.
    fn wait_for_all<T>(
        &mut self,
        limit: Deadline,
        pick: fn(Message) -> std::result::Result<T, Message>,
    ) -> Result<Vec<T>> {
        self.wait_with_status(0..self.names.len(), limit, pick, &mut |_, _| {})
    }

    /// As `wait_for_all`, from some nodes; calls `on_status` with what nodes report meanwhile.
    fn wait_with_status<T>(
        &mut self,
        nodes: Range<usize>,
        limit: Deadline,
        pick: fn(Message) -> std::result::Result<T, Message>,
        on_status: &mut dyn FnMut(u32, NodeStatus),
    ) -> Result<Vec<T>> {
        let mut messages: Vec<Option<T>> = nodes.clone().map(|_| None).collect();
        while messages.iter().any(Option::is_none) {
            match self.events.recv_timeout(limit.left().unwrap_or_default()) {
                Ok(ProcessEvent::Message(node, Message::Rejected(count))) => self.rejected[node] = count,
                Ok(ProcessEvent::Message(node, Message::Status(status))) => on_status(node as u32, status),
                Ok(ProcessEvent::Message(node, message)) if nodes.contains(&node) => match pick(message) {
                    Ok(found) => messages[node - nodes.start] = Some(found),
                    Err(other) => return Err(self.explain(self.failure(ProcessEvent::Message(node, other)))),
                },
                Ok(event) => return Err(self.explain(self.failure(event))),
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

    fn failure(&self, event: ProcessEvent<Message>) -> Failure {
        match event {
            ProcessEvent::Exited(_, exit) => Failure::exited(&exit),
            ProcessEvent::Message(_, Message::Failure(failure)) => failure,
            ProcessEvent::Message(node, _) => {
                Error::fabric(format!("{} sent an unexpected message", self.names[node])).into()
            }
        }
    }

    /// Returns the cause of a failure. When a process dies, the processes that are connected to it may report first.
    fn explain(&self, mut failure: Failure) -> Error {
        let limit = Deadline::after(CAUSE_TIMEOUT);
        while failure.cause < Cause::Root {
            let Ok(event) = self.events.recv_timeout(limit.left().unwrap_or_default()) else { break };
            let is_failure =
                matches!(&event, ProcessEvent::Exited(..) | ProcessEvent::Message(_, Message::Failure(_)));
            let next = is_failure.then(|| self.failure(event));
            failure = next.filter(|next| next.cause > failure.cause).unwrap_or(failure);
        }
        failure.error
    }
}
