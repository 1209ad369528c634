//! The source and the sink of a pipeline: their data, and its comparison.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use ombx_core::{
    benchmark::payload::{Fill, Slots},
    codec::checksum,
    error::{Error, Result},
    result::{Check, Mismatch},
    unit::Rank,
};
use ombx_record::regular_file::NewFile;

use crate::pipeline::{
    memory::PhaseMemory,
    run::{Data, RunId, Wrong},
    shape::{Origin, PipelineShape, SLOTS},
    storage::Storage,
};

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

/// The source and the sink of one node.
pub(super) struct Ends {
    pub(super) shape: PipelineShape,
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

    fn offset(&self, shape: &PipelineShape, buffer: u32, block: u32) -> u64 {
        shape.offset(self.section, buffer, block)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(into, offset).map_err(|e| self.failed(&e))
    }
}

impl Ends {
    /// Opens the files of source and sink. Makes a source of this node that does not exist.
    pub(super) fn open(shape: PipelineShape, node: u32, source: &Storage, sink: &Storage) -> Result<Ends> {
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
    pub(super) fn fill(&self, run: RunId, buffer: u32, memory: &mut PhaseMemory) -> Result<()> {
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
    pub(super) fn poison(&self, run: RunId, memory: &mut PhaseMemory) {
        for (slot, block) in (0..SLOTS).flat_map(|slot| (0..self.shape.nodes).map(move |block| (slot, block)))
        {
            let origin = self.shape.origin(self.node, block);
            let (fill, owner) = pattern(&self.shape, run, origin, slot);
            fill.poison(owner, slots(&self.shape), memory.block(slot, block));
        }
    }

    /// Drains buffer `buffer` of the last phase: writes it to the sink file, or compares it if the sink is memory.
    pub(super) fn drain(&self, run: RunId, buffer: u32, memory: &mut PhaseMemory) -> Result<Option<Wrong>> {
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
    pub(super) fn compare(&self, run: RunId, buffer: u32, memory: &mut PhaseMemory) -> Option<Wrong> {
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
    pub(super) fn read_back(&self, run: RunId, memory: &mut PhaseMemory) -> Result<Option<Wrong>> {
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

fn blocks(shape: PipelineShape) -> impl Iterator<Item = (u32, u32)> {
    (0..shape.buffers).flat_map(move |buffer| (0..shape.nodes).map(move |block| (buffer, block)))
}

fn open_source(shape: PipelineShape, node: u32, source: &Storage) -> Result<Option<OpenFile>> {
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
fn make_source(shape: PipelineShape, node: u32, path: &Path) -> Result<()> {
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
fn slots(shape: &PipelineShape) -> Slots {
    Slots::packed(shape.block, 1)
}

/// Returns the pattern of a block, which differs for every node, block, buffer and run.
fn pattern(shape: &PipelineShape, run: RunId, origin: Origin, buffer: u32) -> (Fill, Rank) {
    let buffer = match run.data {
        Data::Repeated => buffer % SLOTS,
        Data::Fresh => buffer,
    };
    let round = u64::from(run.number) << 32 | u64::from(buffer);
    let fill = Fill { round, bytes: shape.block, iterations: 1 };
    (fill, Rank(origin.node * shape.nodes + origin.block))
}
