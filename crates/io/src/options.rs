//! Choices of MPI-IO benchmarks, and what their entries and kernels have in common.

use std::{marker::PhantomData, path::Path};

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, Parameter, Work,
        payload::{Fill, Slots},
    },
    error::{Error, Result},
    measure::{overlap::TestCalls, plan::Plan},
    result::Check,
    unit::Rank,
};
use ombx_mpi::file::{Direction, File, FileOptions, Files, Order, Pointer};

use crate::read;

/// Directory of the files. It has no default: its file system is what is measured.
pub static DIRECTORY: Parameter = Parameter::free(
    "directory",
    "DIR",
    "Directory of the file system to be measured; files are removed, and have no name while they are \
     measured, but those of io.open",
    |text| match text {
        "" => Err(Error::usage("give the path of a directory")),
        _ => Ok(()),
    },
);

ombx_core::parameter! {
    /// Whether ranks write and read independently of each other
    pub enum Access: "access", Always, default Independent {
        /// Each rank by itself, by calls such as MPI_File_write
        Independent = "independent",
        /// All ranks together, by calls such as MPI_File_write_all
        Collective = "collective",
        /// All ranks together, by a pair of calls such as MPI_File_write_all_begin and MPI_File_write_all_end
        Split = "split",
    }
}

ombx_core::parameter! {
    /// When MPI_File_sync passes what was written to the storage device
    pub enum FileSync: "file-sync", Always, default Each {
        /// After each block, in the time of the block
        Each = "each",
        /// After as many blocks as --window says, in the time of all of them
        End = "end",
        /// Not in the time: data may still be in the memory of the system
        Never = "never",
    }
}

/// Default sizes of blocks.
const SIZES: &str = "4K..16M:x16";

/// Completes the entry of a benchmark.
pub(crate) const fn of_files(entry: Benchmark, parameters: &[&'static Parameter]) -> Benchmark {
    entry
        .layout(Layout::Everyone { least: 1 })
        .sizes(SIZES)
        .with(parameters)
        .with(&[&DIRECTORY])
        .made_of(|_, _| 1, check_blocking)
}

/// Returns an error with the reason if a combination of values does not exist for calls that block.
fn check_blocking(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    match case.get() {
        Access::Split => {
            Err("--access split is for io.iwrite and io.iread: choose --access independent or collective"
                .into())
        }
        Access::Independent | Access::Collective => check_case(case, plan),
    }
}

/// Returns an error with the reason if a combination of values does not exist for calls that start an access.
pub(crate) fn check_started(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let why = match (case.get(), case.get(), case.get::<TestCalls>()) {
        (Pointer::Shared, Access::Collective, _) => {
            "MPI has no nonblocking collective access at a shared pointer: choose --access split"
        }
        (_, Access::Split, TestCalls::One | TestCalls::Ten | TestCalls::Hundred | TestCalls::Thousand) => {
            "--access split has no request to be tested: leave out --tests, or choose another access"
        }
        _ if case.get::<FileSync>() == FileSync::End => {
            "an iteration has one block: choose --file-sync each or never"
        }
        _ => return check_case(case, plan),
    };
    Err(why.into())
}

fn check_case(case: &Case, _: &Plan) -> std::result::Result<(), String> {
    match (case.get::<Files>(), case.get::<Access>(), case.get::<Pointer>()) {
        (Files::Own, Access::Collective | Access::Split, _) => {
            Err("--files own has one rank in each file: choose --access independent, or --files one".into())
        }
        (Files::Own, _, Pointer::Shared) => {
            Err("--files own has no pointer that ranks share: choose --files one, or another --pointer"
                .into())
        }
        _ => Ok(()),
    }
}

/// Returns the directory of files.
pub(crate) fn directory<'c>(cx: &Context<'c>) -> Result<&'c Path> {
    let directory = cx.values.text(&DIRECTORY);
    directory.map(Path::new).ok_or_else(|| Error::unsupported("needs --directory DIR"))
}

/// Returns the work of an iteration: as many blocks of every rank as are in flight.
pub(crate) fn work(case: &Case) -> Work {
    let ops = u64::from(case.depth()) * u64::from(case.ranks);
    Work { bytes: case.bytes.0.saturating_mul(ops), ops, legs: 1 }
}

/// What a kernel does with the blocks of a file.
pub(crate) trait FileOperation: 'static {
    const METRIC: Metric;
    const METHOD: Method;
    /// Where data goes.
    const DIRECTION: Direction;
    /// Order of the blocks in the file.
    const ORDER: Order;

    /// Runs one iteration, on this number of blocks.
    fn iterate(file: &File, blocks: u32) -> Result<()>;
}

/// A file, and the blocks of this rank in it.
pub(crate) struct FileKernel<O> {
    pub(crate) file: File,
    slots: Slots,
    rank: Rank,
    /// Rank whose blocks this rank reads back.
    writer: Rank,
    operation: PhantomData<O>,
}

impl<O: FileOperation> Kernel for FileKernel<O> {
    const METRIC: Metric = O::METRIC;
    const METHOD: Method = O::METHOD;

    fn work(case: &Case) -> Work {
        work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = Slots::new(case.bytes.0, case.depth());
        let (directory, files, pointer) = (directory(cx)?, case.get(), case.get());
        let file = File::open(cx, FileOptions { directory, files, pointer, slots })?;
        Ok(FileKernel {
            rank: cx.rank(),
            writer: file.neighbour(cx.team),
            file,
            slots,
            operation: PhantomData,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, self.file.outgoing());
        if O::DIRECTION == Direction::Read {
            self.file.write_all()?;
            fill.poison(self.rank, self.slots, self.file.incoming());
        }
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.file.rewind()
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        O::iterate(&self.file, self.slots.count)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let FileKernel { file, slots, rank, writer, .. } = self;
        if O::DIRECTION == Direction::Write {
            fill.poison(*writer, *slots, file.incoming());
        }
        match (O::DIRECTION, O::ORDER) {
            (Direction::Read, Order::Known) => Ok(fill.check(*rank, *slots, file.incoming(), *rank)),
            (Direction::Read, Order::Unknown) => read::check_read(file, *slots, fill),
            (Direction::Write, Order::Known) => {
                file.read_back()?;
                Ok(fill.check(*writer, *slots, file.incoming(), *rank))
            }
            (Direction::Write, Order::Unknown) => {
                file.read_places()?;
                read::check_written(file, *slots, fill)
            }
        }
    }
}
