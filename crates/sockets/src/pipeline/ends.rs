//! The two ends of a pipeline: where blocks come from and go to, what each must hold, and whether it does.

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

/// An end as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// `memory`.
    Memory,
    /// `file:PATH`.
    File(PathBuf),
}

impl End {
    pub(super) fn parse(text: &str) -> Result<End> {
        match text.split_once(':') {
            None if text == "memory" => Ok(End::Memory),
            Some(("file", path)) if !path.is_empty() => Ok(End::File(path.into())),
            _ => Err(Error::usage(format!("{text:?} is neither memory nor file:PATH"))),
        }
    }

    /// As in a row: not where, but what.
    pub(super) fn name(&self) -> &'static str {
        match self {
            End::Memory => "memory",
            End::File(_) => "file",
        }
    }

    /// As `parse` reads it; paths that are no text are refused before.
    pub(super) fn text(&self) -> String {
        match self {
            End::Memory => "memory".into(),
            End::File(path) => format!("file:{}", path.display()),
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            End::Memory => None,
            End::File(path) => Some(path),
        }
    }
}

/// One run of the pipeline, as far as the data is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) number: u32,
    pub(super) data: Data,
}

/// What a source in memory sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// What its two buffers held before the run, again and again: nothing is written or compared while time is measured.
    Standing,
    /// A fresh pattern in each buffer, each byte of which the sink compares as it arrives.
    Fresh,
}

/// The ends of a pipeline as one node has them open.
pub(super) struct Ends {
    pub(super) shape: Shape,
    node: u32,
    source: Option<(PathBuf, File)>,
    sink: Option<(PathBuf, File)>,
}

/// A wrong byte: buffer, block, byte, and expected and actual value.
pub(super) type Wrong = [u64; 4];

impl Ends {
    /// Opens the files of both ends.
    pub(super) fn open(shape: Shape, node: u32, source: &End, sink: &End) -> Result<Ends> {
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

    /// Whether the first phase's process has work in a run.
    pub(super) fn fills(&self, pass: Pass) -> bool {
        self.source.is_some() || pass.data == Data::Fresh
    }

    /// Whether the last phase's process has work in a run.
    pub(super) fn drains(&self, pass: Pass) -> bool {
        self.sink.is_some() || pass.data == Data::Fresh
    }

    /// Puts into one of the source's two buffers what it sends as buffer `buffer`.
    pub(super) fn fill(&self, pass: Pass, buffer: u32, memory: &mut Memory) -> Result<()> {
        for block in 0..self.shape.nodes {
            let origin = Origin { node: self.node, block };
            self.produce(pass, origin, buffer, memory.block(buffer % SLOTS, block))?;
        }
        Ok(())
    }

    /// Puts into the sink's buffers what must not be there after a run.
    pub(super) fn poison(&self, pass: Pass, memory: &mut Memory) {
        for (slot, block) in (0..SLOTS).flat_map(|slot| (0..self.shape.nodes).map(move |block| (slot, block)))
        {
            let origin = self.shape.origin(self.node, block);
            let (fill, owner) = self.pattern(pass, origin, slot);
            fill.poison(owner, self.slots(), memory.block(slot, block));
        }
    }

    /// Takes buffer `buffer` out of the sink's memory: into the file, or compared where there is none.
    pub(super) fn drain(&self, pass: Pass, buffer: u32, memory: &mut Memory) -> Result<Option<Wrong>> {
        let Some((path, file)) = &self.sink else { return self.compare(pass, buffer, memory) };
        for block in 0..self.shape.nodes {
            let place = self.shape.place(self.node, buffer, block);
            file.write_all_at(memory.block(buffer % SLOTS, block), place)
                .map_err(|e| Error::storage(format!("sink file {}: {e}", path.display())))?;
        }
        Ok(None)
    }

    /// Compares buffer `buffer` in the sink's memory with what its origins sent.
    pub(super) fn compare(&self, pass: Pass, buffer: u32, memory: &mut Memory) -> Result<Option<Wrong>> {
        for block in 0..self.shape.nodes {
            let wrong = self.differs(pass, buffer, block, memory.block(buffer % SLOTS, block))?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// Reads this node's part of the sink's file again and compares it with what its origins sent.
    pub(super) fn read_back(&self, pass: Pass) -> Result<Option<Wrong>> {
        let Some((path, file)) = &self.sink else { return Ok(None) };
        let mut found = vec![0; self.shape.block as usize];
        for (buffer, block) in
            (0..self.shape.buffers).flat_map(|i| (0..self.shape.nodes).map(move |block| (i, block)))
        {
            file.read_exact_at(&mut found, self.shape.place(self.node, buffer, block))
                .map_err(|e| Error::storage(format!("sink file {}, read again: {e}", path.display())))?;
            let wrong = self.differs(pass, buffer, block, &found)?;
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// The first byte of a block that is not what its origin sent.
    fn differs(&self, pass: Pass, buffer: u32, block: u32, found: &[u8]) -> Result<Option<Wrong>> {
        let origin = self.shape.origin(self.node, block);
        let slot = u64::from(buffer) * u64::from(self.shape.nodes) + u64::from(block);
        if self.source.is_some() {
            let mut expected = vec![0; found.len()];
            self.produce(pass, origin, buffer, &mut expected)?;
            let differing = found.iter().zip(&expected).zip(0..).find(|((f, e), _)| f != e);
            return Ok(differing.map(|((f, e), byte)| [slot, byte, u64::from(*e), u64::from(*f)]));
        }
        let (fill, owner) = self.pattern(pass, origin, buffer);
        Ok(match fill.check(owner, self.slots(), found, Rank(self.node)) {
            Check::Failed(m) => Some([slot, m.byte, m.expected.into(), m.actual.into()]),
            _ => None,
        })
    }

    /// What a block of a buffer holds when it leaves its source.
    fn produce(&self, pass: Pass, origin: Origin, buffer: u32, into: &mut [u8]) -> Result<()> {
        if let Some((path, file)) = &self.source {
            let place = self.shape.place(origin.node, buffer, origin.block);
            return file
                .read_exact_at(into, place)
                .map_err(|e| Error::storage(format!("source file {}: {e}", path.display())));
        }
        let (fill, owner) = self.pattern(pass, origin, buffer);
        fill.write(owner, self.slots(), into);
        Ok(())
    }

    /// A block is one message, as the payload's pattern sees it.
    fn slots(&self) -> Slots {
        Slots { bytes: self.shape.block, count: 1, stride: self.shape.block }
    }

    /// The pattern of a block: of no other node, block, buffer or run.
    fn pattern(&self, pass: Pass, origin: Origin, buffer: u32) -> (Fill, Rank) {
        let buffer = match pass.data {
            Data::Standing => buffer % SLOTS,
            Data::Fresh => buffer,
        };
        let round = u64::from(pass.number) << 32 | u64::from(buffer);
        let fill = Fill { round, bytes: self.shape.block, iterations: 1 };
        (fill, Rank(origin.node * self.shape.nodes + origin.block))
    }
}
