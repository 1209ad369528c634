//! The process of a node: connects to the others, starts its phases, times the runs and reports.

use std::{
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::host_ns,
};

use super::{
    connect,
    ends::{Data, Ends, Pass, Wrong},
    failure::Failure,
    memory::{AHEAD, Counter, Lack, Memory},
    note::{Inlet, Kind, Note, Outlet},
    phase::go_phase,
    process::{Crewed, Family, Member, Orphan},
    shape::{SLOTS, Shape},
    task::{Plan, Role, Told},
};
use crate::token::Token;

/// Those whom a node has started, once it has.
type Shared = Arc<Mutex<Option<Family>>>;

/// Sets up the phases of a node and lets them run as it is told to, until it is ended.
pub(super) fn node(told: Told, node: u32) -> std::result::Result<(), Failure> {
    let Told { plan, name, words, line, orphan, .. } = told;
    let (family, up) = (Shared::default(), line.outlet);
    let notes = listen(line.inlet, Arc::clone(&family), orphan)
        .map_err(|e| Failure::broken(&name, "a thread", &e))?;
    if let Err(failure) = serve((&plan, node, &name), &words, &notes, &up, &family) {
        // Whoever this would be told to may be gone: then this process ends anyway.
        let _ = up.send(&failure.note());
    }
    // One of its phases has failed, or it has, or it is being ended: by the thread that listens.
    while notes.recv().is_ok() {}
    match orphan {
        Orphan::Returns => Ok(()),
        Orphan::Ends => loop {
            thread::park();
        },
    }
}

/// Sets everything up, then obeys.
fn serve(
    (plan, node, name): (&Plan, u32, &str),
    words: &[String],
    notes: &Receiver<Note>,
    up: &Outlet,
    family: &Shared,
) -> std::result::Result<(), Failure> {
    let shape = plan.shape;
    let gone = |e| Failure::broken(name, "who started it", &e);
    let next = || notes.recv().map_err(|_| gone(std::io::ErrorKind::BrokenPipe.into()));

    let token: Token = words.get(2).map_or("", String::as_str).parse()?;
    let at = words.get(3).and_then(|address| address.parse().ok());
    let door = connect::open(at, token)?;
    up.send(&Note::new(Kind::Address).numbers([door.port().into()])).map_err(gone)?;
    let peers = next()?.words;
    let connections = connect::connect(&shape, node, door, token, &peers, up)?;

    let ends = Ends::open(shape, node, &plan.source, &plan.sink)?;
    let memories = (0..shape.phases).map(|_| Memory::create(&shape)).collect::<Result<Vec<_>>>()?;
    let mut members = Vec::new();
    let steps = connections.incoming.iter().zip(&connections.outgoing);
    for ((phase, memory), (incoming, outgoing)) in (0..).zip(&memories).zip(steps) {
        let role = Role::Phase { node, phase };
        let member = Member::start(plan.crew, role.name())?;
        let files: Vec<BorrowedFd<'_>> =
            [memory].into_iter().chain(incoming).chain(outgoing).map(OwnedFd::as_fd).collect();
        member.task(&plan.task(role), &files)?;
        members.push(member);
    }
    // Only the workers keep them: if one dies, its connection breaks.
    drop(connections);
    let crewed = Crewed::watch(members, up);
    let ready = crewed.ready();
    *family.lock().unwrap_or_else(PoisonError::into_inner) = Some(crewed.into_family());
    if ready {
        let mapped = memories.iter().map(|fd| Memory::map(fd, &shape, plan.waiting));
        let mut runs = Runs { shape, ends, memories: mapped.collect::<Result<_>>()? };
        up.send(&Note::new(Kind::Ready)).map_err(gone)?;
        while let Ok(note) = notes.recv() {
            up.send(&runs.obey(&note)?).map_err(gone)?;
        }
    }
    Ok(())
}

/// Hands on what whoever started this process says, and ends everything when nothing more can come.
fn listen(mut inlet: Inlet, family: Shared, orphan: Orphan) -> std::io::Result<Receiver<Note>> {
    let (sender, notes) = mpsc::channel();
    let listen = move || {
        while let Ok(note) = inlet.receive() {
            if sender.send(note).is_err() {
                break;
            }
        }
        if let Some(family) = &mut *family.lock().unwrap_or_else(PoisonError::into_inner) {
            family.end();
        }
        if orphan == Orphan::Ends {
            std::process::exit(0);
        }
    };
    thread::Builder::new().spawn(listen)?;
    Ok(notes)
}

/// The runs of a node: what it does in each, and what it has seen.
struct Runs {
    shape: Shape,
    ends: Ends,
    memories: Vec<Memory>,
}

impl Runs {
    /// Does what a note says and answers it.
    fn obey(&mut self, note: &Note) -> Result<Note> {
        let data = if note.number(1) == 0 { Data::Standing } else { Data::Fresh };
        let pass = Pass { number: note.number(0) as u32, data };
        match note.kind {
            Kind::Prepare => self.prepare(pass).map(|()| Note::new(Kind::Prepared)),
            Kind::Go => Ok(self.run(pass)),
            Kind::Check => {
                let wrong = self.check(pass)?;
                Ok(Note::new(Kind::Checked).numbers(wrong.into_iter().flatten()))
            }
            other => Err(Error::fabric(format!("a node cannot obey {other:?}"))),
        }
    }

    fn first(&mut self) -> &mut Memory {
        &mut self.memories[0]
    }

    fn last(&mut self) -> &mut Memory {
        let last = self.memories.len() - 1;
        &mut self.memories[last]
    }

    /// Everything that is not timed: counters, what a source in memory sends, and what must not be left in the sink. All phases
    /// but the first may begin, and wait for data.
    fn prepare(&mut self, pass: Pass) -> Result<()> {
        self.memories.iter().for_each(Memory::reset);
        let Runs { shape, ends, memories } = self;
        let [first, .., last] = memories.as_mut_slice() else { return Err(Error::fabric("too few phases")) };
        ends.poison(pass, last);
        if !ends.fills(pass) {
            (0..SLOTS.min(shape.buffers)).try_for_each(|buffer| ends.fill(pass, buffer, first))?;
            (0..SLOTS).for_each(|slot| first.set(Counter::Filled(slot), AHEAD));
        }
        if ends.drains(pass) {
            last.set(Counter::GoPhase, go_phase(pass));
        } else {
            (0..SLOTS).for_each(|slot| last.set(Counter::Drained(slot), AHEAD));
        }
        memories[1..].iter().for_each(|memory| memory.set(Counter::Go, pass.number));
        Ok(())
    }

    /// One run, from the signal to the first phase to that of the last.
    fn run(&mut self, pass: Pass) -> Note {
        let nodes = self.shape.nodes;
        let (fills, drains) = (u32::from(self.ends.fills(pass)), u32::from(self.ends.drains(pass)));
        let began = host_ns();
        if fills > 0 {
            self.first().set(Counter::GoPhase, go_phase(pass));
        }
        self.first().set(Counter::Go, pass.number);
        self.last().wait(Counter::Done, nodes + drains);
        let ended = host_ns();
        self.first().wait(Counter::Done, nodes + fills);
        let between = self.memories.len() - 1;
        for memory in &self.memories[1..between] {
            memory.wait(Counter::Done, 2 * nodes);
        }
        let left = (0..self.shape.buffers).map(|i| self.memories[0].stamps(i).min().unwrap_or(0));
        let arrived = (0..self.shape.buffers).map(|i| self.memories[between].stamps(i).max().unwrap_or(0));
        Note::new(Kind::Done).numbers([began, ended]).numbers(self.waits()).numbers(left).numbers(arrived)
    }

    /// For data and for room, phase by phase, how long its senders or receivers waited on the average: for data the receivers
    /// at their sockets, in the first phase the senders for the source; for room the senders at their sockets, in the last
    /// phase the receivers for the sink.
    fn waits(&self) -> Vec<u64> {
        let (nodes, last) = (self.shape.nodes, self.memories.len() - 1);
        let (senders, receivers) = (0..nodes, nodes..2 * nodes);
        let of = |(at, memory): (usize, &Memory)| {
            let workers =
                [if at == 0 { &senders } else { &receivers }, if at == last { &receivers } else { &senders }];
            let mean = |workers: &Range<u32>, lack: Lack| {
                let all = workers.clone().map(|worker| memory.waits(worker).of(lack));
                all.sum::<u64>() / u64::from(nodes)
            };
            [mean(workers[0], Lack::Data), mean(workers[1], Lack::Room)]
        };
        self.memories.iter().enumerate().flat_map(of).collect()
    }

    /// Compares what arrived: the file, or what the last two buffers hold, and what the last phase found meanwhile.
    fn check(&mut self, pass: Pass) -> Result<Option<Wrong>> {
        let found = self.last().wrong();
        if found.is_some() {
            return Ok(found);
        }
        if self.ends.drains(pass) {
            return self.ends.read_back(pass);
        }
        let Runs { shape, ends, memories } = self;
        let Some(last) = memories.last_mut() else { return Ok(None) };
        for buffer in shape.buffers.saturating_sub(SLOTS)..shape.buffers {
            let wrong = ends.compare(pass, buffer, last)?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }
}

impl Plan {
    /// The task of a node: the token, and where it listens; everywhere where that is none.
    pub(super) fn task_of_a_node(&self, node: u32, token: Token, at: Option<std::net::IpAddr>) -> Note {
        let at = at.map_or(String::new(), |at| at.to_string());
        self.task(Role::Node { node }).words([token.to_string(), at])
    }
}
