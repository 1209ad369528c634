//! `io.write`: every rank writes blocks to a file.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        AxisValue, Benchmark, Case, Context, Kernel, Method, Metric, Work,
        payload::{Check, Fill, Slots},
    },
    error::Result,
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, pace::Pacing, paced_kernel::run_paced},
    unit::Rank,
};
use ombx_mpi::{
    Mesh,
    file::{Call, File, Files, Pointer, Write, WriteAll, WriteAt, WriteAtAll},
};

use crate::options::{self, Access, FileSync};

ombx_core::inventory::submit! {
    options::of_files(
        Benchmark::custom("io.write", "a block that every rank writes to a file", Metric::Bandwidth, METHOD, run),
        &[Pacing::AXIS, SyncHosts::AXIS, Pointer::AXIS, Access::AXIS, Files::AXIS, FileSync::AXIS],
    )
    .streaming_only(FileSync::AXIS, FileSync::End.name())
    .iterates(&["MPI_File_write", "MPI_File_sync"], "ranks W S / t of the slowest rank")
}

const METHOD: Method = Method {
    timed: "writes of every rank, each from a buffer of its own, and MPI_File_sync after each or after the last, unless --file-sync \
            never. The call is MPI_File_write, with --pointer explicit MPI_File_write_at, and with --access collective \
            MPI_File_write_all or MPI_File_write_at_all",
    untimed: "creating the file; moving the pointer to the start of the file and synchronising the ranks before each sample; reading back \
              what another rank has written, and checking it",
    like: "S_Write_indv, P_Write_indv, P_Write_priv, C_Write_indv of IMB-IO and the same with expl. IMB adds to the end of the file in \
           each repetition, and synchronises the file twice with a barrier in between",
};

/// Runs each combination of pointer, access and synchronisation. They are types, so that the timed loop has no branch.
fn run(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pointer| {
        session.split(|session, access| match (pointer, access) {
            (Pointer::Individual, Access::Independent) => synced::<Write>(session),
            (Pointer::Individual, Access::Collective) => synced::<WriteAll>(session),
            (Pointer::Explicit, Access::Independent) => synced::<WriteAt>(session),
            (Pointer::Explicit, Access::Collective) => synced::<WriteAtAll>(session),
        })
    })
}

fn synced<C: Call>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, sync| match sync {
        FileSync::Each | FileSync::End => run_paced::<Writing<C, Synced>, Mesh>(session),
        FileSync::Never => run_paced::<Writing<C, Unsynced>, Mesh>(session),
    })
}

/// What follows the writes of an iteration.
trait Completion: 'static {
    fn complete(file: &File) -> Result<()>;
}

/// `MPI_File_sync`.
enum Synced {}

/// Nothing.
enum Unsynced {}

impl Completion for Synced {
    #[inline(always)]
    fn complete(file: &File) -> Result<()> {
        file.sync()
    }
}

impl Completion for Unsynced {
    #[inline(always)]
    fn complete(_: &File) -> Result<()> {
        Ok(())
    }
}

/// Writes of a rank by call `C`, which `S` completes.
struct Writing<C, S> {
    file: File,
    slots: Slots,
    rank: Rank,
    /// Rank whose blocks this rank reads back.
    writer: Rank,
    types: PhantomData<(C, S)>,
}

impl<C: Call, S: Completion> Kernel for Writing<C, S> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        options::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let (file, slots) = options::open(cx, case)?;
        Ok(Writing { rank: cx.rank(), writer: file.neighbour(cx.team), file, slots, types: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, self.file.outgoing());
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.file.rewind()
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        for block in 0..self.slots.count {
            C::call(&self.file, block)?;
        }
        S::complete(&self.file)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        fill.poison(self.writer, self.slots, self.file.incoming());
        self.file.read_back()?;
        Ok(fill.check(self.writer, self.slots, self.file.incoming(), self.rank))
    }
}
