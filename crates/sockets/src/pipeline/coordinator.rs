//! The coordinator: starts the nodes, lets them run, and knows who is to blame when something goes wrong.

use std::{
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
    hosts::{self, Hosts},
    note::{Kind, Note},
    process::{Crew, Event, Family, Member},
    shape::Shape,
    task::{Plan, Role},
};
use crate::{deadline::Deadline, token::Token};

/// Starting all processes takes this long at the most, and as much again for each hundred of them.
const START: Duration = Duration::from_secs(60);
/// After the first failure, a cause of it is waited for.
const CAUSE: Duration = Duration::from_millis(700);
/// Whoever moves fewer bytes per second is taken for dead.
const SLOWEST: u64 = 500_000;

/// A pipeline whose connections stand.
pub(super) struct Pipeline {
    shape: Shape,
    names: Vec<String>,
    family: Family,
    events: Receiver<Event>,
    run: u32,
    strangers: Vec<u64>,
    one_clock: bool,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Node by node.
    pub(super) nodes: Vec<NodeRun>,
    /// From the first signal to a first phase until every last phase was done. Where nodes have clocks of their own, from
    /// telling them until all have answered.
    pub(super) total_ns: u64,
    /// Whether all times are of one clock.
    pub(super) one_clock: bool,
}

/// What one node says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeRun {
    /// When its first phase was told to begin, on its host's clock.
    pub(super) began: u64,
    /// When its last phase had said that it was done.
    pub(super) ended: u64,
    /// Phase by phase, nanoseconds waited for data and for room.
    pub(super) waits: Vec<[u64; 2]>,
    /// When each buffer began to leave its source.
    pub(super) left: Vec<u64>,
    /// When each buffer was complete at its sink.
    pub(super) arrived: Vec<u64>,
}

impl NodeRun {
    pub(super) fn of(Note { numbers, .. }: Note, shape: &Shape) -> Result<NodeRun> {
        let (phases, buffers) = (shape.phases as usize, shape.buffers as usize);
        if numbers.len() != 2 + 2 * phases + 2 * buffers {
            return Err(Error::fabric("a node's report is not complete"));
        }
        let (times, rest) = numbers.split_at(2);
        let (waits, stamps) = rest.split_at(2 * phases);
        let (left, arrived) = stamps.split_at(buffers);
        Ok(NodeRun {
            began: times[0],
            ended: times[1],
            waits: waits.chunks_exact(2).map(|w| [w[0], w[1]]).collect(),
            left: left.to_vec(),
            arrived: arrived.to_vec(),
        })
    }
}

impl Pipeline {
    /// Starts all processes and waits until all connections stand. `nodes` says how node processes of this host are started.
    pub(super) fn start(plan: &Plan, hosts: &Hosts, nodes: Crew) -> Result<Pipeline> {
        let shape = plan.shape;
        let token = Token::random()?;
        let mut members = Vec::new();
        for node in 0..shape.nodes {
            let name = Role::Node { node }.name();
            let member = match hosts.of(node) {
                None => Member::start(nodes, name)?,
                Some(host) => Member::remote(hosts::command(host, &name)?, format!("{name} on {host}"))?,
            };
            member.task(&plan.task_of_a_node(node, token, hosts.listens()), &[])?;
            members.push(member);
        }
        let names = members.iter().map(|m| m.name.clone()).collect();
        let (sender, events) = mpsc::channel();
        let heard = move |event| drop(sender.send(event));
        let family = Family::watch(members, heard);
        let strangers = vec![0; shape.nodes as usize];
        let one_clock = hosts.are_one();
        let mut pipeline = Pipeline { shape, names, family, events, run: 0, strangers, one_clock };
        let limit = Deadline::after(START.saturating_mul(1 + (shape.processes() / 100) as u32));
        let ports = pipeline.each(Kind::Address, limit)?;
        let peers = (0..).zip(&ports).map(|(node, note)| hosts.address(node, note.number(0)));
        let peers = peers.collect::<Result<Vec<_>>>()?;
        pipeline.family.tell(&Note::new(Kind::Peers).words(peers));
        pipeline.each(Kind::Ready, limit)?;
        Ok(pipeline)
    }

    /// As if there had been one run more.
    #[cfg(test)]
    pub(super) fn pretend_another_run(&mut self) {
        self.run += 1;
    }

    /// Strangers who knocked at the nodes' ports.
    pub(super) fn strangers(&self) -> u64 {
        self.strangers.iter().sum()
    }

    /// One run of all buffers through all phases.
    pub(super) fn run(&mut self, data: Data) -> Result<Run> {
        self.run += 1;
        let number = [self.run.into(), data as u64];
        self.family.tell(&Note::new(Kind::Prepare).numbers(number));
        self.each(Kind::Prepared, self.limit())?;
        let told = host_ns();
        self.family.tell(&Note::new(Kind::Go).numbers(number));
        let done = self.each(Kind::Done, self.limit())?;
        let answered = host_ns();
        let nodes =
            done.into_iter().map(|note| NodeRun::of(note, &self.shape)).collect::<Result<Vec<_>>>()?;
        let began = nodes.iter().map(|node| node.began).min().unwrap_or(0);
        let ended = nodes.iter().map(|node| node.ended).max().unwrap_or(0);
        let total_ns =
            if self.one_clock { ended.saturating_sub(began) } else { answered.saturating_sub(told) };
        Ok(Run { nodes, total_ns, one_clock: self.one_clock })
    }

    /// Lets every node compare what arrived in the last run: the first wrong byte, and the node that has it.
    pub(super) fn check(&mut self, data: Data) -> Result<Option<(u32, Wrong)>> {
        self.family.tell(&Note::new(Kind::Check).numbers([self.run.into(), data as u64]));
        let found = self.each(Kind::Checked, self.limit())?;
        Ok((0..).zip(found).find_map(|(node, note)| Some((node, Wrong::try_from(note.numbers).ok()?))))
    }

    /// Time for a step of a run; far more than it needs anywhere.
    fn limit(&self) -> Deadline {
        let bytes = self.shape.bytes().saturating_mul(u64::from(self.shape.phases));
        Deadline::after(START + Duration::from_secs(bytes / SLOWEST))
    }

    /// A note of this kind from every node, in their order.
    fn each(&mut self, kind: Kind, limit: Deadline) -> Result<Vec<Note>> {
        let mut notes: Vec<Option<Note>> = self.names.iter().map(|_| None).collect();
        while notes.iter().any(Option::is_none) {
            match self.events.recv_timeout(limit.left().unwrap_or_default()) {
                Ok(Event::Note(node, note)) if note.kind == kind => notes[node] = Some(note),
                Ok(Event::Note(node, note)) if note.kind == Kind::Strangers => {
                    self.strangers[node] = note.number(0);
                }
                Ok(event) => return Err(self.explain(self.failure(&event))),
                Err(RecvTimeoutError::Timeout) => {
                    let silent = notes.iter().zip(&self.names).find(|(note, _)| note.is_none());
                    let name = silent.map_or("a node", |(_, name)| name);
                    let seconds = limit.limit().as_secs();
                    return Err(Error::fabric(format!("{name} said nothing for {seconds} s and was ended")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::fabric("all nodes are gone")),
            }
        }
        Ok(notes.into_iter().flatten().collect())
    }

    fn failure(&self, event: &Event) -> Failure {
        match event {
            Event::Ended(node, end) => end.failure(&self.names[*node]),
            Event::Note(_, note) if note.kind == Kind::Failure => Failure::of(note),
            Event::Note(node, note) => {
                Error::fabric(format!("{} said {:?} out of turn", self.names[*node], note.kind)).into()
            }
        }
    }

    /// The cause of a failure: when a process dies, those connected to it may be heard first.
    fn explain(&self, mut worst: Failure) -> Error {
        let limit = Deadline::after(CAUSE);
        while worst.cause < Cause::Root {
            let Ok(event) = self.events.recv_timeout(limit.left().unwrap_or_default()) else { break };
            let of_failure = !matches!(&event, Event::Note(_, note) if note.kind != Kind::Failure);
            let next = of_failure.then(|| self.failure(&event));
            worst = next.filter(|next| next.cause > worst.cause).unwrap_or(worst);
        }
        worst.error
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.family.end();
    }
}
