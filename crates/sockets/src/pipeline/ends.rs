//! The source and the sink of a pipeline: their data, and its comparison.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use ombx_core::{
    benchmark::payload::{Fill, Slots},
    clock::host_ns,
    codec::checksum,
    error::{Error, Result},
    result::{Check, Mismatch},
    unit::{Rank, digits},
};
use ombx_host::environment::place_of_thread;
use ombx_record::regular_file::NewFile;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
    thread::{CpuSet, sched_setaffinity},
};
use serde::{Deserialize, Serialize};

use crate::{
    control::Channel,
    pipeline::{
        Failure,
        member::watch_parent,
        memory::{Counter, Lack, Memory, WaitMode, Waits, pause},
        message::{Assignment, Message, Origin, SLOTS, Shape},
        phase::Storage,
    },
};

/// Number and data of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunId {
    pub(super) number: u32,
    pub(super) data: Data,
}

ombx_core::parameter! {
    /// Work of the first and the last phase on buffers in memory
    pub(super) enum EndWork: "ends", Always, default Work {
        /// The first phase fills each buffer, the last phase reads and compares each
        Work = "work",
        /// None while runs are timed: the first phase sends two buffers again and again, the last phase keeps what arrives
        Idle = "idle",
    }
}

impl EndWork {
    /// Returns the data of timed runs.
    pub(super) fn data(self) -> Data {
        match self {
            EndWork::Work => Data::Fresh,
            EndWork::Idle => Data::Repeated,
        }
    }
}

/// The data of a source in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Data {
    /// The content of its two buffers, again and again. Nothing is written or compared during the run.
    Repeated,
    /// A new pattern in each buffer. The sink compares every byte as it arrives.
    Fresh,
}

/// The source and the sink of one node.
pub(super) struct Ends {
    pub(super) shape: Shape,
    node: u32,
    source: Option<OpenFile>,
    sink: Option<OpenFile>,
    /// Checksum of each block that should arrive, by buffer, then by block. Used if the source is a file.
    expected: Vec<u64>,
}

/// A file of a source or a sink.
struct OpenFile {
    what: &'static str,
    path: PathBuf,
    file: File,
    /// Position of this node's section in the file.
    section: u32,
}

/// First wrong byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrong {
    /// Number of the block in the node's section.
    pub(super) slot: u64,
    /// Byte in the block.
    pub(super) byte: u64,
    /// Expected value.
    pub(super) expected: u8,
    /// Value that arrived; equal to the expected one if only a checksum differed.
    pub(super) actual: u8,
}

impl OpenFile {
    fn new(what: &'static str, path: PathBuf, file: io::Result<File>, section: u32) -> Result<OpenFile> {
        match file {
            Ok(file) => Ok(OpenFile { what, path, file, section }),
            Err(e) => Err(Error::storage(format!("{what} file {}: {e}", path.display()))),
        }
    }

    fn failed(&self, e: &io::Error) -> Error {
        Error::storage(format!("{} file {}: {e}", self.what, self.path.display()))
    }

    fn is_regular(&self) -> bool {
        self.file.metadata().is_ok_and(|facts| facts.is_file())
    }

    fn offset(&self, shape: &Shape, buffer: u32, block: u32) -> u64 {
        shape.offset(self.section, buffer, block)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(into, offset).map_err(|e| self.failed(&e))
    }
}

impl Ends {
    /// Opens the files of source and sink. Makes a source of this node that does not exist.
    pub(super) fn open(shape: Shape, node: u32, source: &Storage, sink: &Storage) -> Result<Ends> {
        let named = |e: Error| e.within(format!("node {node}"));
        let source = open_source(shape, node, source).map_err(named)?;
        let sink = open_sink(node, sink).map_err(named)?;
        let identity = |file: &OpenFile| file.file.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
        if let (Some(source), Some(sink)) = (&source, &sink)
            && identity(source) == identity(sink)
        {
            let path = source.path.display();
            return Err(named(Error::usage(format!("source and sink are one file, {path}; choose two"))));
        }
        Ok(Ends { shape, node, source, sink, expected: Vec::new() })
    }

    /// Returns whether the process of the first phase fills buffers in a run.
    pub(super) fn fills(&self, run: RunId) -> bool {
        self.source.is_some() || run.data == Data::Fresh
    }

    /// Returns whether the process of the last phase drains buffers in a run.
    pub(super) fn drains(&self, run: RunId) -> bool {
        self.sink.is_some() || run.data == Data::Fresh
    }

    /// Returns whether the data that arrived can be compared: a sink that is no regular file cannot be read back.
    pub(super) fn can_check(&self) -> bool {
        self.sink.as_ref().is_none_or(OpenFile::is_regular)
    }

    /// Empties the sink's file, so that the data of an earlier run cannot pass the check.
    pub(super) fn empty_sink(&self) -> Result<()> {
        match &self.sink {
            Some(sink) if sink.is_regular() => sink.file.set_len(0).map_err(|e| sink.failed(&e)),
            _ => Ok(()),
        }
    }

    /// Returns the checksums of all blocks of the source's file, by buffer, then by block.
    pub(super) fn checksums(&self) -> Result<Vec<u64>> {
        let Some(source) = &self.source else { return Ok(Vec::new()) };
        let mut content = vec![0; self.shape.block as usize];
        let each = |(buffer, block)| {
            source.read(&mut content, source.offset(&self.shape, buffer, block))?;
            Ok(checksum(&content))
        };
        self.blocks().map(each).collect()
    }

    /// Sets the checksums of the blocks that should arrive.
    pub(super) fn expect(&mut self, checksums: Vec<u64>) {
        self.expected = checksums;
    }

    /// Returns a part of block `slot` of the source's file.
    pub(super) fn part_of_source(&self, slot: u64, offset: u64, length: usize) -> Result<Vec<u8>> {
        let nodes = u64::from(self.shape.nodes);
        let (Some(source), true) =
            (&self.source, slot < u64::from(self.shape.buffers) * nodes && length as u64 <= self.shape.block)
        else {
            return Err(Error::fabric(format!("node {} has no block {slot} in a file", self.node)));
        };
        let mut content = vec![0; length];
        let start = source.offset(&self.shape, (slot / nodes) as u32, (slot % nodes) as u32);
        source.read(&mut content, start.saturating_add(offset)).map(|()| content)
    }

    /// Fills a buffer of the first phase with the data of buffer `buffer`.
    pub(super) fn fill(&self, run: RunId, buffer: u32, memory: &mut Memory) -> Result<()> {
        for block in 0..self.shape.nodes {
            let into = memory.block(buffer % SLOTS, block);
            match &self.source {
                Some(source) => source.read(into, source.offset(&self.shape, buffer, block))?,
                None => {
                    let (fill, owner) = pattern(&self.shape, run, Origin { node: self.node, block }, buffer);
                    fill.write(owner, slots(&self.shape), into);
                }
            }
        }
        Ok(())
    }

    /// Fills the buffers of the last phase with data that is wrong after the run.
    pub(super) fn poison(&self, run: RunId, memory: &mut Memory) {
        for (slot, block) in (0..SLOTS).flat_map(|slot| (0..self.shape.nodes).map(move |block| (slot, block)))
        {
            let origin = self.shape.origin(self.node, block);
            let (fill, owner) = pattern(&self.shape, run, origin, slot);
            fill.poison(owner, slots(&self.shape), memory.block(slot, block));
        }
    }

    /// Drains buffer `buffer` of the last phase: writes it to the sink file, or compares it if the sink is memory.
    pub(super) fn drain(&self, run: RunId, buffer: u32, memory: &mut Memory) -> Result<Option<Wrong>> {
        let Some(sink) = &self.sink else { return Ok(self.compare(run, buffer, memory)) };
        for block in 0..self.shape.nodes {
            let offset = sink.offset(&self.shape, buffer, block);
            sink.file
                .write_all_at(memory.block(buffer % SLOTS, block), offset)
                .map_err(|e| sink.failed(&e))?;
        }
        Ok(None)
    }

    /// Compares buffer `buffer` of the last phase with the data that its origins sent. Keeps the first wrong block.
    pub(super) fn compare(&self, run: RunId, buffer: u32, memory: &mut Memory) -> Option<Wrong> {
        let slot = buffer % SLOTS;
        (0..self.shape.nodes).find_map(|block| {
            let wrong = self.differs(run, buffer, block, memory.block(slot, block));
            if wrong.is_some() && memory.wrong().is_none() {
                let content = memory.block(slot, block).to_vec();
                memory.kept().copy_from_slice(&content);
            }
            wrong
        })
    }

    /// Reads this node's section of the sink's file and compares it with the data that its origins sent. Keeps the first wrong
    /// block in `memory`.
    pub(super) fn read_back(&self, run: RunId, memory: &mut Memory) -> Result<Option<Wrong>> {
        let Some(sink) = &self.sink else { return Ok(None) };
        let mut found = vec![0; self.shape.block as usize];
        for (buffer, block) in self.blocks() {
            sink.file.read_exact_at(&mut found, sink.offset(&self.shape, buffer, block)).map_err(|e| {
                Error::storage(format!("cannot read sink file {} back: {e}", sink.path.display()))
            })?;
            let wrong = self.differs(run, buffer, block, &found);
            if wrong.is_some() {
                memory.kept().copy_from_slice(&found);
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// Returns the first wrong byte of a block.
    fn differs(&self, run: RunId, buffer: u32, block: u32, found: &[u8]) -> Option<Wrong> {
        let slot = u64::from(buffer) * u64::from(self.shape.nodes) + u64::from(block);
        if self.source.is_some() {
            return (self.expected.get(slot as usize) != Some(&checksum(found))).then_some(Wrong {
                slot,
                byte: 0,
                expected: 0,
                actual: 0,
            });
        }
        let (fill, owner) = pattern(&self.shape, run, self.shape.origin(self.node, block), buffer);
        match fill.check(owner, slots(&self.shape), found, Rank(self.node)) {
            Check::Failed(Mismatch { byte, expected, actual, .. }) => {
                Some(Wrong { slot, byte, expected, actual })
            }
            _ => None,
        }
    }

    /// Returns buffer and block of every block of a section, in order.
    fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        blocks(self.shape)
    }
}

fn blocks(shape: Shape) -> impl Iterator<Item = (u32, u32)> {
    (0..shape.buffers).flat_map(move |buffer| (0..shape.nodes).map(move |block| (buffer, block)))
}

fn open_source(shape: Shape, node: u32, source: &Storage) -> Result<Option<OpenFile>> {
    let Some(path) = source.path_of(node) else { return Ok(None) };
    if source.is_of_node() {
        if !path.exists() {
            make_source(shape, node, &path)?;
        }
        source.check_size(&shape, node)?;
    }
    let file = File::open(&path);
    OpenFile::new("source", path, file, source.section_of(node)).map(Some)
}

/// Writes a source file of one node, with a different pattern in each block. The file has its name once it is complete.
fn make_source(shape: Shape, node: u32, path: &Path) -> Result<()> {
    let failed = |e: io::Error| Error::storage(format!("source file {}: {e}", path.display()));
    let new = NewFile::beside(path).map_err(failed)?;
    let made = OpenFile::new("source", path.to_owned(), new.file().try_clone(), 0)?;
    let mut content = vec![0; shape.block as usize];
    for (buffer, block) in blocks(shape) {
        let run = RunId { number: 0, data: Data::Fresh };
        let (fill, owner) = pattern(&shape, run, Origin { node, block }, buffer);
        fill.write(owner, slots(&shape), &mut content);
        let written = made.file.write_all_at(&content, made.offset(&shape, buffer, block));
        written.map_err(|e| made.failed(&e))?;
    }
    new.rename_to(path).map_err(failed)
}

fn open_sink(node: u32, sink: &Storage) -> Result<Option<OpenFile>> {
    let Some(path) = sink.path_of(node) else { return Ok(None) };
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    OpenFile::new("sink", path, file, sink.section_of(node)).map(Some)
}

/// Returns the layout of a block for the payload's pattern: one message.
fn slots(shape: &Shape) -> Slots {
    Slots::packed(shape.block, 1)
}

/// Returns the pattern of a block, which differs for every node, block, buffer and run.
fn pattern(shape: &Shape, run: RunId, origin: Origin, buffer: u32) -> (Fill, Rank) {
    let buffer = match run.data {
        Data::Repeated => buffer % SLOTS,
        Data::Fresh => buffer,
    };
    let round = u64::from(run.number) << 32 | u64::from(buffer);
    let fill = Fill { round, bytes: shape.block, iterations: 1 };
    (fill, Rank(origin.node * shape.nodes + origin.block))
}

/// Sends block `peer` of every buffer to node `peer`.
pub(super) fn sender(assignment: Assignment, phase: u32, peer: u32) -> std::result::Result<(), Failure> {
    let number = assignment.plan.shape.sender(phase, peer);
    let mut worker = Worker::start(assignment, number)?;
    let (nodes, first) = (worker.shape.nodes, phase == 0);
    worker.repeat(peer, |worker, buffer, waits| {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        waits.add(Lack::Data, worker.memory.wait(Counter::Filled(slot), nodes * (turn + 1)));
        if first {
            worker.memory.stamp(buffer, peer);
        }
        waits.add(Lack::Space, worker.send(slot, peer)?);
        worker.memory.advance(Counter::Drained(slot), 1);
        Ok(())
    })
}

/// Receives block `peer` of every buffer from node `peer`.
pub(super) fn receiver(assignment: Assignment, phase: u32, peer: u32) -> std::result::Result<(), Failure> {
    let number = assignment.plan.shape.receiver(phase, peer);
    let mut worker = Worker::start(assignment, number)?;
    let (nodes, last) = (worker.shape.nodes, phase + 1 == worker.shape.phases);
    worker.repeat(nodes + peer, |worker, buffer, waits| {
        let (slot, turn) = (buffer % SLOTS, buffer / SLOTS);
        waits.add(Lack::Space, worker.memory.wait(Counter::Drained(slot), nodes * turn));
        waits.add(Lack::Data, worker.receive(slot, peer)?);
        if last {
            worker.memory.stamp(buffer, peer);
        }
        worker.memory.advance(Counter::Filled(slot), 1);
        Ok(())
    })
}

/// A sender or a receiver.
struct Worker {
    shape: Shape,
    wait_mode: WaitMode,
    name: String,
    memory: Memory,
    socket: OwnedFd,
}

impl Worker {
    /// Binds worker `number` of its node, maps the memory of the phase and reports that it is ready.
    fn start(assignment: Assignment, number: u32) -> std::result::Result<Worker, Failure> {
        let Assignment { plan, name, files, channel, execution, .. } = assignment;
        plan.cpus.bind(plan.earlier_workers.saturating_add(number)).map_err(|e| e.within(&name))?;
        let Channel { reader, writer } = channel;
        let Ok([memory, socket]) = <[OwnedFd; 2]>::try_from(files) else {
            return Err(Error::fabric(format!("{name} received no memory or no connection")).into());
        };
        let memory = Memory::map(memory, &plan.shape, plan.wait_mode)?;
        let gone = |e: io::Error| Failure::broken(&name, "the phase is gone", &e);
        writer.write(&Message::Ready).map_err(gone)?;
        watch_parent(reader, execution, drop, || ())?;
        Ok(Worker { shape: plan.shape, wait_mode: plan.wait_mode, name, memory, socket })
    }

    /// Handles every buffer of every run, until the connection breaks or this process ends.
    fn repeat(
        &mut self,
        place: u32,
        mut each: impl FnMut(&mut Worker, u32, &mut Waits) -> io::Result<()>,
    ) -> std::result::Result<(), Failure> {
        for run in 1.. {
            self.memory.wait(Counter::Start, run);
            let mut waits = Waits::default();
            for buffer in 0..self.shape.buffers {
                each(self, buffer, &mut waits)
                    .map_err(|e| Failure::broken(&self.name, "its connection broke", &e))?;
            }
            self.memory.set_waits(place, waits);
            self.memory.advance(Counter::Done, 1);
        }
        Ok(())
    }

    /// Sends a block; returns the nanoseconds of waiting for space in the socket.
    fn send(&mut self, slot: u32, block: u32) -> io::Result<u64> {
        let Worker { memory, socket, wait_mode, .. } = self;
        let mut left = &*memory.block(slot, block);
        let mut waited = 0;
        while !left.is_empty() {
            match send(&*socket, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => left = &left[sent..],
                Err(Errno::AGAIN) => waited += wait_for(socket, PollFlags::OUT, *wait_mode)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(waited)
    }

    /// Receives a block; returns the nanoseconds of waiting for data.
    fn receive(&mut self, slot: u32, block: u32) -> io::Result<u64> {
        let Worker { memory, socket, wait_mode, .. } = self;
        let mut left = memory.block(slot, block);
        let mut waited = 0;
        while !left.is_empty() {
            match recv(&*socket, &mut *left, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((received, _)) => left = &mut left[received..],
                Err(Errno::AGAIN) => waited += wait_for(socket, PollFlags::IN, *wait_mode)?,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(waited)
    }
}

/// Waits until a socket has data or space; returns the nanoseconds.
fn wait_for(socket: &OwnedFd, event: PollFlags, wait_mode: WaitMode) -> io::Result<u64> {
    let since = host_ns();
    let mut polls = 0;
    loop {
        let limit = match wait_mode {
            WaitMode::Sleep => None,
            WaitMode::Spin => Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }),
        };
        match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), event)], limit) {
            Ok(0) => polls = pause(polls),
            Ok(_) => return Ok(host_ns().saturating_sub(since)),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// CPUs to which the senders and receivers of a host are bound in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) enum WorkerCpus {
    /// The kernel chooses. Written `any`.
    Any,
    /// Every CPU that the node may use. Written `all`.
    All,
    /// These CPUs. Written as a list of the kernel: `0-3,8`.
    List(String, Vec<u32>),
}

impl WorkerCpus {
    pub(super) fn parse(text: &str) -> Result<WorkerCpus> {
        match text {
            "any" => Ok(WorkerCpus::Any),
            "all" => Ok(WorkerCpus::All),
            _ => {
                let cpus: Option<Vec<Vec<u32>>> = text.split(',').map(range).collect();
                let cpus = cpus.ok_or_else(|| {
                    let most = CpuSet::MAX_CPU - 1;
                    Error::usage(format!(
                        "{text:?} is neither any, all nor a list of CPUs up to {most} such as 0-3,8"
                    ))
                })?;
                Ok(WorkerCpus::List(text.into(), cpus.concat()))
            }
        }
    }

    /// Returns the text that `parse` reads.
    pub(super) fn text(&self) -> &str {
        match self {
            WorkerCpus::Any => "any",
            WorkerCpus::All => "all",
            WorkerCpus::List(text, _) => text,
        }
    }

    /// Returns how many CPUs senders and receivers share on this host.
    pub(super) fn count(&self) -> usize {
        match self {
            WorkerCpus::Any | WorkerCpus::All => place_of_thread().cpu_numbers().len(),
            WorkerCpus::List(_, cpus) => cpus.iter().collect::<BTreeSet<_>>().len(),
        }
    }

    /// Fails if this process may not use one of the CPUs.
    pub(super) fn check(&self) -> Result<()> {
        let WorkerCpus::List(text, cpus) = self else { return Ok(()) };
        let here = place_of_thread();
        match cpus.iter().find(|cpu| !here.cpu_numbers().contains(cpu)) {
            None => Ok(()),
            Some(cpu) => Err(Error::usage(format!(
                "--worker-cpus {text}: CPU {cpu} is not available; this process may use {}",
                here.cpus
            ))),
        }
    }

    /// Binds the calling thread to the CPU of a worker. Workers are numbered on their host.
    pub(super) fn bind(&self, worker: u32) -> Result<()> {
        let cpus = match self {
            WorkerCpus::Any => return Ok(()),
            WorkerCpus::All => place_of_thread().cpu_numbers(),
            WorkerCpus::List(_, cpus) => cpus.clone(),
        };
        let Some(cpu) = cpus.get(worker as usize % cpus.len().max(1)) else { return Ok(()) };
        let mut set = CpuSet::new();
        set.set(*cpu as usize);
        sched_setaffinity(None, &set)
            .map_err(|e| Error::unsupported(format!("cannot bind a process to CPU {cpu}: {e}")))
    }
}

impl From<WorkerCpus> for String {
    fn from(cpus: WorkerCpus) -> String {
        cpus.text().to_owned()
    }
}

impl TryFrom<String> for WorkerCpus {
    type Error = Error;

    fn try_from(text: String) -> Result<WorkerCpus> {
        WorkerCpus::parse(&text)
    }
}

/// Reads `3` or `0-3`.
fn range(text: &str) -> Option<Vec<u32>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to): (u32, u32) = (digits(from)?, digits(to)?);
    (from <= to && (to as usize) < CpuSet::MAX_CPU).then(|| (from..=to).collect())
}

#[cfg(test)]
mod worker_tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixStream,
        time::Duration,
    };

    use super::{
        super::member::{Members, run_role},
        *,
    };
    use crate::control::MAX_PIPELINE_MESSAGE;
    use crate::pipeline::message::{Plan, Role};

    const SHAPE: Shape = Shape { nodes: 1, phases: 2, buffers: 3, block: 10 };
    /// Time in which a worker that does not wait has handled a block.
    const LIMIT: Duration = Duration::from_secs(60);
    /// Time in which a worker that should wait would go on.
    const SHORT: Duration = Duration::from_millis(20);

    /// A worker in its first run, with the memory of its phase and the other end of its connection.
    struct Phase {
        memory: Memory,
        connection: UnixStream,
        _members: (Members, UnixStream),
    }

    impl Phase {
        fn with(role: Role) -> Phase {
            let plan = Plan::of_test(SHAPE);
            let (parent, other) = UnixStream::pair().unwrap();
            let parent = Channel::over(OwnedFd::from(parent).into(), MAX_PIPELINE_MESSAGE).unwrap().writer;
            let (connection, of_worker) = UnixStream::pair().unwrap();
            connection.set_read_timeout(Some(LIMIT)).unwrap();
            let memory = Memory::create(&SHAPE).unwrap();
            let mut members = Members::new(parent);
            members.start(&plan, role, run_role, &[memory.as_fd(), of_worker.as_fd()]).unwrap();
            assert!(members.are_ready());
            let memory = Memory::map(memory, &SHAPE, plan.wait_mode).unwrap();
            memory.set(Counter::Start, 1);
            Phase { memory, connection, _members: (members, other) }
        }

        /// Asserts that a counter of a buffer reaches a value.
        fn reaches(&self, counter: Counter, value: u32) {
            assert!(self.memory.sleep_at_most(counter, value, LIMIT), "{counter:?} stays below {value}");
        }
    }

    #[test]
    fn a_receiver_fills_two_buffers_in_turn_and_waits_for_their_drain() {
        let mut phase = Phase::with(Role::Receiver { node: 0, phase: 1, peer: 0 });
        // The first two blocks wait for nothing, and no buffer is announced before its block is whole.
        phase.connection.write_all(&[1; 5]).unwrap();
        assert!(!phase.memory.sleep_at_most(Counter::Filled(0), 1, SHORT), "half a block was announced");
        phase.connection.write_all(&[1; 5]).unwrap();
        phase.connection.write_all(&[2; 10]).unwrap();
        phase.reaches(Counter::Filled(0), 1);
        phase.reaches(Counter::Filled(1), 1);
        assert_eq!([0, 1].map(|slot| phase.memory.block(slot, 0).to_vec()), [[1; 10], [2; 10]]);
        // The third needs the first buffer again.
        phase.connection.write_all(&[3; 10]).unwrap();
        assert!(!phase.memory.sleep_at_most(Counter::Filled(0), 2, SHORT), "it was not drained");
        assert_eq!(phase.memory.block(0, 0), [1; 10]);
        phase.memory.advance(Counter::Drained(0), 1);
        phase.reaches(Counter::Filled(0), 2);
        assert_eq!([0, 1].map(|slot| phase.memory.block(slot, 0).to_vec()), [[3; 10], [2; 10]]);
    }

    #[test]
    fn a_sender_drains_two_buffers_in_turn_and_waits_for_their_data() {
        let mut phase = Phase::with(Role::Sender { node: 0, phase: 0, peer: 0 });
        let mut received = [0; 10];
        for (slot, turn, content) in [(0, 1, 1), (1, 1, 2), (0, 2, 3)] {
            assert!(!phase.memory.sleep_at_most(Counter::Drained(slot), turn, SHORT), "it was not filled");
            phase.memory.block(slot, 0).fill(content);
            phase.memory.advance(Counter::Filled(slot), 1);
            phase.connection.read_exact(&mut received).unwrap();
            assert_eq!(received, [content; 10]);
            phase.reaches(Counter::Drained(slot), turn);
        }
    }
}

#[cfg(test)]
mod worker_cpus_tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn lists_are_read_or_rejected() {
        let WorkerCpus::List(_, cpus) = WorkerCpus::parse("0-2,8").unwrap() else { panic!() };
        assert_eq!(cpus, [0, 1, 2, 8]);
        for text in ["any", "all", "0-2,8"] {
            assert_eq!(WorkerCpus::parse(text).unwrap().text(), text);
        }
        for text in ["", "x", "1-", "-1", "+1", "3-1", "0,,1", "0-99999", "4294967296", "none"] {
            assert!(WorkerCpus::parse(text).is_err(), "{text}");
        }
        assert_eq!(WorkerCpus::parse("0,0,1").unwrap().count(), 2);
    }

    #[test]
    fn workers_are_bound_in_turn() {
        let mine = place_of_thread().cpu_numbers();
        let cpus = WorkerCpus::parse("all").unwrap();
        for worker in 0..2 * mine.len() {
            let found = std::thread::scope(|scope| {
                let bound = scope.spawn(|| {
                    cpus.bind(worker as u32).unwrap();
                    sched_getaffinity(None).unwrap()
                });
                bound.join().unwrap()
            });
            assert!(found.count() == 1 && found.is_set(mine[worker % mine.len()] as usize), "{worker}");
        }
        let missing = (0..CpuSet::MAX_CPU as u32).rev().find(|cpu| !mine.contains(cpu)).unwrap();
        let missing = WorkerCpus::parse(&missing.to_string()).unwrap();
        assert!(missing.check().unwrap_err().to_string().contains("is not available"));
    }
}
