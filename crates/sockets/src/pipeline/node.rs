//! The process of a node: connects to the other nodes, starts its phases, times the runs and reports.

use std::{
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use ombx_core::{
    clock::host_ns,
    error::{Error, Result},
};

use super::{
    ends::Ends,
    member::{Members, watch_parent},
    memory::{AHEAD, Counter, Lack, PhaseMemory},
    message::{Message, PartRequest, Place},
    phase::start_value,
    run::{NodeRun, NodeStatus, RunId, Wrong},
    shape::{PipelineShape, SLOTS},
};
use crate::{
    control::{Channel, MessageWriter, ProcessGroup},
    pipeline::{
        Failure, member,
        message::{Assignment, Entrance, Plan, Role, RunRole},
    },
};

/// The phases of a node, once it has started them.
type Phases = Arc<Mutex<Option<ProcessGroup<Message>>>>;

/// Sets up the phases of a node and runs them as the coordinator asks, until the coordinator closes the channel.
pub(super) fn node(assignment: Assignment, node: u32) -> std::result::Result<(), Failure> {
    let Assignment { plan, name, entrance, channel, execution, run_role, .. } = assignment;
    let Channel { reader, writer: parent } = channel;
    let phases = Phases::default();
    let (sender, messages) = mpsc::channel();
    let ended = Arc::clone(&phases);
    let on_close = move || drop(ended.lock().unwrap_or_else(PoisonError::into_inner).take());
    let watching = watch_parent(reader, execution, move |message| drop(sender.send(message)), on_close)?;
    let node = Node { plan: &plan, node, name: &name, messages: &messages, parent: &parent, run_role };
    if let Err(failure) = node.serve(entrance, &phases) {
        // Fails if the coordinator has ended: then this process ends too.
        let _ = parent.write(&Message::Failure(failure));
    }
    // The watching thread ends this process, also after a failure.
    let _ = watching.join();
    Ok(())
}

/// A node and its channel to the coordinator.
struct Node<'a> {
    plan: &'a Plan,
    node: u32,
    name: &'a str,
    messages: &'a Receiver<Message>,
    parent: &'a MessageWriter,
    run_role: RunRole,
}

impl Node<'_> {
    /// Connects to the other nodes, starts the phases and answers the coordinator's requests.
    fn serve(&self, entrance: Option<Entrance>, phases: &Phases) -> std::result::Result<(), Failure> {
        let Node { plan, node, .. } = *self;
        let shape = plan.shape;
        let Some(Entrance { token, at }) = entrance else {
            return Err(Error::fabric(format!("{} received no token", self.name)).into());
        };
        let listener = member::listen(at, &plan.socket, token)?;
        self.write(&Message::Port(listener.port()))?;
        let peers = match self.messages.recv() {
            Ok(Message::Peers(peers)) => peers,
            Ok(_) => return Err(Error::fabric(format!("{} received no addresses", self.name)).into()),
            Err(_) => return Err(self.gone(std::io::ErrorKind::BrokenPipe.into())),
        };
        let connections = member::connect(plan, node, listener, token, &peers, self.parent)?;

        let ends = Ends::open(shape, node, &plan.source, &plan.sink)?;
        let memories = (0..shape.phases).map(|_| PhaseMemory::create(&shape)).collect::<Result<Vec<_>>>()?;
        let mut members = Members::new(self.parent.clone());
        let steps = connections.incoming.iter().zip(&connections.outgoing);
        for ((phase, memory), (incoming, outgoing)) in (0..).zip(&memories).zip(steps) {
            let files: Vec<BorrowedFd<'_>> =
                [memory].into_iter().chain(incoming).chain(outgoing).map(OwnedFd::as_fd).collect();
            members.start(plan, Role::Phase { node, phase }, self.run_role, &files)?;
        }
        // Senders and receivers hold the only handles: if one dies, its connection breaks.
        drop(connections);
        let ready = members.are_ready();
        *phases.lock().unwrap_or_else(PoisonError::into_inner) = Some(members.into_group());
        if ready {
            let mapped = memories.iter().map(|fd| PhaseMemory::map(fd, &shape, plan.wait_mode));
            let can_check = ends.can_check();
            let memories = mapped.collect::<Result<_>>()?;
            let (phases, parent) = (Arc::clone(phases), self.parent.clone());
            let mut runs = Runs { shape, ends, memories, phases, parent, status: plan.status };
            self.write(&Message::Connected { can_check })?;
            while let Ok(request) = self.messages.recv() {
                self.write(&runs.answer(request)?)?;
            }
        }
        Ok(())
    }

    fn write(&self, message: &Message) -> std::result::Result<(), Failure> {
        self.parent.write(message).map_err(|e| self.gone(e))
    }

    fn gone(&self, error: std::io::Error) -> Failure {
        Failure::broken(self.name, "the coordinator is gone", &error)
    }
}

/// The runs of a node.
struct Runs {
    shape: PipelineShape,
    ends: Ends,
    memories: Vec<PhaseMemory>,
    phases: Phases,
    parent: MessageWriter,
    status: Option<Duration>,
}

impl Runs {
    /// Does what the coordinator requests and returns the answer.
    fn answer(&mut self, request: Message) -> Result<Message> {
        match request {
            Message::Prepare(run) => self.prepare(run).map(|()| Message::Prepared),
            Message::Start(run) => Ok(Message::Done(self.run(run))),
            Message::ComputeChecksums => self.ends.checksums().map(Message::Checksums),
            Message::Expect(checksums) => {
                let request = Message::Expect(checksums.clone());
                if let Some(phases) = &*self.phases.lock().unwrap_or_else(PoisonError::into_inner) {
                    phases.send(self.memories.len() - 1, &request);
                }
                self.ends.expect(checksums);
                Ok(Message::Expecting)
            }
            Message::SendPart(request) => self.part(request).map(Message::Part),
            Message::Check(run) => self.check(run).map(Message::Checked),
            _ => Err(Error::fabric("a node received an unexpected message")),
        }
    }

    /// Returns a part of a block of the source's file, or of the block that the last phase has kept.
    fn part(&mut self, PartRequest { place, slot, offset, length }: PartRequest) -> Result<Vec<u8>> {
        if place == Place::Source {
            return self.ends.part_of_source(slot, offset, length as usize);
        }
        let kept = self.last().kept();
        let part = offset.checked_add(length).and_then(|end| kept.get(offset as usize..end as usize));
        part.map(<[u8]>::to_vec).ok_or_else(|| Error::fabric("a part exceeds its block"))
    }

    fn first(&mut self) -> &mut PhaseMemory {
        &mut self.memories[0]
    }

    fn last(&mut self) -> &mut PhaseMemory {
        let last = self.memories.len() - 1;
        &mut self.memories[last]
    }

    /// Prepares a run, untimed: resets counters, fills a source in memory and poisons the sink. Then it starts all phases but
    /// the first; they wait for data.
    fn prepare(&mut self, run: RunId) -> Result<()> {
        self.memories.iter().for_each(PhaseMemory::reset);
        let Runs { shape, ends, memories, .. } = self;
        ends.empty_sink()?;
        let [first, .., last] = memories.as_mut_slice() else { return Err(Error::fabric("too few phases")) };
        ends.poison(run, last);
        if !ends.fills(run) {
            (0..SLOTS.min(shape.buffers)).try_for_each(|buffer| ends.fill(run, buffer, first))?;
            (0..SLOTS).for_each(|slot| first.set(Counter::Filled(slot), AHEAD));
        }
        if ends.drains(run) {
            last.set(Counter::StartPhase, start_value(run));
        } else {
            (0..SLOTS).for_each(|slot| last.set(Counter::Drained(slot), AHEAD));
        }
        memories[1..].iter().for_each(|memory| memory.set(Counter::Start, run.number));
        Ok(())
    }

    /// Runs all buffers through the phases, timed from the signal to the first phase until the last phase is done.
    fn run(&mut self, run: RunId) -> NodeRun {
        let nodes = self.shape.nodes;
        let (fills, drains) = (u32::from(self.ends.fills(run)), u32::from(self.ends.drains(run)));
        let began = host_ns();
        if fills > 0 {
            self.first().set(Counter::StartPhase, start_value(run));
        }
        self.first().set(Counter::Start, run.number);
        match self.status {
            Some(interval) => {
                while !self.last().sleep_at_most(Counter::Done, nodes + drains, interval) {
                    // Fails if the coordinator has ended: then this process ends too.
                    let _ = self.parent.write(&Message::Status(self.status(began)));
                }
            }
            None => _ = self.last().wait(Counter::Done, nodes + drains),
        }
        let ended = host_ns();
        self.first().wait(Counter::Done, nodes + fills);
        let between = self.memories.len() - 1;
        for memory in &self.memories[1..between] {
            memory.wait(Counter::Done, 2 * nodes);
        }
        let left = (0..self.shape.buffers).map(|i| self.memories[0].stamps(i).min().unwrap_or(0));
        let arrived = (0..self.shape.buffers).map(|i| self.memories[between].stamps(i).max().unwrap_or(0));
        let end_work = [0, between].map(|phase| self.memories[phase].end_work());
        NodeRun {
            began,
            ended,
            end_work,
            waits: self.waits(),
            left: left.collect(),
            arrived: arrived.collect(),
        }
    }

    /// Returns the progress of the run.
    fn status(&self, began: u64) -> NodeStatus {
        let last = self.memories.len() - 1;
        let buffers = |phase: usize, counter: fn(u32) -> Counter| {
            let blocks = (0..SLOTS).map(|slot| u64::from(self.memories[phase].read(counter(slot))));
            blocks.sum::<u64>() / u64::from(self.shape.nodes)
        };
        NodeStatus {
            left: buffers(0, Counter::Drained),
            arrived: buffers(last, Counter::Filled),
            elapsed_ns: host_ns().saturating_sub(began),
        }
    }

    /// Returns the mean nanoseconds of waiting by phase, for data and for space.
    ///
    /// Receivers wait for data at their sockets; in the first phase, senders wait for the source. Senders wait for space at their
    /// sockets; in the last phase, receivers wait for the sink.
    fn waits(&self) -> Vec<[u64; 2]> {
        let (nodes, last) = (self.shape.nodes, self.memories.len() - 1);
        let (senders, receivers) = (0..nodes, nodes..2 * nodes);
        let of = |(at, memory): (usize, &PhaseMemory)| {
            let workers =
                [if at == 0 { &senders } else { &receivers }, if at == last { &receivers } else { &senders }];
            let mean = |workers: &Range<u32>, lack: Lack| {
                let all = workers.clone().map(|worker| memory.waits(worker).ns(lack));
                all.sum::<u64>() / u64::from(nodes)
            };
            [mean(workers[0], Lack::Data), mean(workers[1], Lack::Space)]
        };
        self.memories.iter().enumerate().map(of).collect()
    }

    /// Compares the data that arrived: the sink's file or the last two buffers, and what the last phase has found.
    fn check(&mut self, run: RunId) -> Result<Option<Wrong>> {
        let found = self.last().wrong();
        if found.is_some() {
            return Ok(found);
        }
        let Runs { shape, ends, memories, .. } = self;
        let Some(last) = memories.last_mut() else { return Ok(None) };
        if ends.drains(run) {
            return ends.read_back(run, last);
        }
        let mut buffers = shape.buffers.saturating_sub(SLOTS)..shape.buffers;
        Ok(buffers.find_map(|buffer| ends.compare(run, buffer, last)))
    }
}
