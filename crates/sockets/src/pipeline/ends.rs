//! The source and the sink of a pipeline: their data, and its comparison.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use ombx_core::{
    benchmark::payload::{Check, Fill, Slots},
    error::{Error, Result},
    unit::Rank,
};

use super::{
    memory::Memory,
    shape::{Origin, SLOTS, Shape},
};

/// The storage of a source or a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Storage {
    /// Written `memory`.
    Memory,
    /// Written `file:PATH`.
    File(PathBuf),
}

impl Storage {
    pub(super) fn parse(text: &str) -> Result<Storage> {
        match text.split_once(':') {
            None if text == "memory" => Ok(Storage::Memory),
            Some(("file", path)) if !path.is_empty() => Ok(Storage::File(path.into())),
            _ => Err(Error::usage(format!("{text:?} is neither memory nor file:PATH"))),
        }
    }

    /// Returns the value in a row, without the path.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::File(_) => "file",
        }
    }

    /// Returns the text that `parse` reads.
    pub(super) fn text(&self) -> String {
        match self {
            Storage::Memory => "memory".into(),
            Storage::File(path) => format!("file:{}", path.display()),
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Storage::Memory => None,
            Storage::File(path) => Some(path),
        }
    }
}

/// Number and data of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunId {
    pub(super) number: u32,
    pub(super) data: Data,
}

ombx_core::axis! {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    source: Option<(PathBuf, File)>,
    sink: Option<(PathBuf, File)>,
}

/// A wrong byte: number of the block in the node's section, byte in it, expected and actual value.
pub(super) type Wrong = [u64; 4];

impl Ends {
    /// Opens the files of source and sink.
    pub(super) fn open(shape: Shape, node: u32, source: &Storage, sink: &Storage) -> Result<Ends> {
        let opened = |path: &Path, what: &str, file: io::Result<File>| -> Result<(PathBuf, File)> {
            let file = file.map_err(|e| Error::storage(format!("{what} file {}: {e}", path.display())))?;
            Ok((path.to_path_buf(), file))
        };
        let source = source.path().map(|path| opened(path, "source", File::open(path))).transpose()?;
        let writable =
            |path: &Path| OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let sink = sink.path().map(|path| opened(path, "sink", writable(path))).transpose()?;
        Ok(Ends { shape, node, source, sink })
    }

    /// Returns whether the process of the first phase fills buffers in a run.
    pub(super) fn fills(&self, run: RunId) -> bool {
        self.source.is_some() || run.data == Data::Fresh
    }

    /// Returns whether the process of the last phase drains buffers in a run.
    pub(super) fn drains(&self, run: RunId) -> bool {
        self.sink.is_some() || run.data == Data::Fresh
    }

    /// Fills a buffer of the first phase with the data of buffer `buffer`.
    pub(super) fn fill(&self, run: RunId, buffer: u32, memory: &mut Memory) -> Result<()> {
        for block in 0..self.shape.nodes {
            let origin = Origin { node: self.node, block };
            self.produce(run, origin, buffer, memory.block(buffer % SLOTS, block))?;
        }
        Ok(())
    }

    /// Fills the buffers of the last phase with data that is wrong after the run.
    pub(super) fn poison(&self, run: RunId, memory: &mut Memory) {
        for (slot, block) in (0..SLOTS).flat_map(|slot| (0..self.shape.nodes).map(move |block| (slot, block)))
        {
            let origin = self.shape.origin(self.node, block);
            let (fill, owner) = self.pattern(run, origin, slot);
            fill.poison(owner, self.slots(), memory.block(slot, block));
        }
    }

    /// Drains buffer `buffer` of the last phase: writes it to the sink file, or compares it if the sink is memory.
    pub(super) fn drain(&self, run: RunId, buffer: u32, memory: &mut Memory) -> Result<Option<Wrong>> {
        let Some((path, file)) = &self.sink else { return self.compare(run, buffer, memory) };
        for block in 0..self.shape.nodes {
            let offset = self.shape.offset(self.node, buffer, block);
            file.write_all_at(memory.block(buffer % SLOTS, block), offset)
                .map_err(|e| Error::storage(format!("sink file {}: {e}", path.display())))?;
        }
        Ok(None)
    }

    /// Compares buffer `buffer` of the last phase with the data that its origins sent.
    pub(super) fn compare(&self, run: RunId, buffer: u32, memory: &mut Memory) -> Result<Option<Wrong>> {
        for block in 0..self.shape.nodes {
            let wrong = self.differs(run, buffer, block, memory.block(buffer % SLOTS, block))?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// Reads this node's section of the sink's file and compares it with the data that its origins sent.
    pub(super) fn read_back(&self, run: RunId) -> Result<Option<Wrong>> {
        let Some((path, file)) = &self.sink else { return Ok(None) };
        let mut found = vec![0; self.shape.block as usize];
        for (buffer, block) in
            (0..self.shape.buffers).flat_map(|i| (0..self.shape.nodes).map(move |block| (i, block)))
        {
            file.read_exact_at(&mut found, self.shape.offset(self.node, buffer, block))
                .map_err(|e| Error::storage(format!("cannot read sink file {} back: {e}", path.display())))?;
            let wrong = self.differs(run, buffer, block, &found)?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// Returns the first wrong byte of a block.
    fn differs(&self, run: RunId, buffer: u32, block: u32, found: &[u8]) -> Result<Option<Wrong>> {
        let origin = self.shape.origin(self.node, block);
        let slot = u64::from(buffer) * u64::from(self.shape.nodes) + u64::from(block);
        if self.source.is_some() {
            let mut expected = vec![0; found.len()];
            self.produce(run, origin, buffer, &mut expected)?;
            let differing = found.iter().zip(&expected).zip(0..).find(|((f, e), _)| f != e);
            return Ok(differing.map(|((f, e), byte)| [slot, byte, u64::from(*e), u64::from(*f)]));
        }
        let (fill, owner) = self.pattern(run, origin, buffer);
        Ok(match fill.check(owner, self.slots(), found, Rank(self.node)) {
            Check::Failed(m) => Some([slot, m.byte, m.expected.into(), m.actual.into()]),
            _ => None,
        })
    }

    /// Writes the content of a block at its source.
    fn produce(&self, run: RunId, origin: Origin, buffer: u32, into: &mut [u8]) -> Result<()> {
        if let Some((path, file)) = &self.source {
            let offset = self.shape.offset(origin.node, buffer, origin.block);
            return file
                .read_exact_at(into, offset)
                .map_err(|e| Error::storage(format!("source file {}: {e}", path.display())));
        }
        let (fill, owner) = self.pattern(run, origin, buffer);
        fill.write(owner, self.slots(), into);
        Ok(())
    }

    /// Returns the layout of a block for the payload's pattern: one message.
    fn slots(&self) -> Slots {
        Slots { bytes: self.shape.block, count: 1, stride: self.shape.block }
    }

    /// Returns the pattern of a block, which differs for every node, block, buffer and run.
    fn pattern(&self, run: RunId, origin: Origin, buffer: u32) -> (Fill, Rank) {
        let buffer = match run.data {
            Data::Repeated => buffer % SLOTS,
            Data::Fresh => buffer,
        };
        let round = u64::from(run.number) << 32 | u64::from(buffer);
        let fill = Fill { round, bytes: self.shape.block, iterations: 1 };
        (fill, Rank(origin.node * self.shape.nodes + origin.block))
    }
}
