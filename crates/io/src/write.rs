//! `io.write`: every rank writes blocks to a file.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{Benchmark, Method, Metric, ParameterValue},
    error::Result,
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
};
use ombx_mpi::{
    Mesh,
    file::{
        Call, Direction, File, Files, Order, Pointer, Write, WriteAll, WriteAt, WriteAtAll, WriteOrdered,
        WriteShared,
    },
};

use crate::options::{self, Access, FileKernel, FileOperation, FileSync};

ombx_core::inventory::submit!(
    options::of_files(
        Benchmark::custom(
            "io.write",
            "a block that every rank writes to a file",
            Metric::Bandwidth,
            METHOD,
            run
        ),
        &[
            Pacing::PARAMETER,
            SyncHosts::PARAMETER,
            Pointer::PARAMETER,
            Access::PARAMETER,
            Files::PARAMETER,
            FileSync::PARAMETER
        ],
    )
    .streaming_only(FileSync::PARAMETER, FileSync::End.name())
    .iterates(&["MPI_File_write", "MPI_File_sync"], "ranks W S / t of the slowest rank")
);

const METHOD: Method = Method {
    timed: "writes of every rank, each from a buffer of its own, and MPI_File_sync after each or after the \
            last, unless --file-sync never. The call is MPI_File_write, with --pointer explicit \
            MPI_File_write_at, with --pointer shared MPI_File_write_shared, and with --access collective \
            MPI_File_write_all, MPI_File_write_at_all or MPI_File_write_ordered",
    untimed: "creating the file; moving the pointer to the start of the file and synchronising the ranks \
              before each sample; reading back what another rank has written, and checking it",
    like: "S_Write_indv, P_Write_indv, P_Write_priv, C_Write_indv of IMB-IO and the same with expl and \
           shared. IMB adds to the end of the file in each repetition, and synchronises the file twice \
           with a barrier in between",
};

/// Runs each combination of pointer, access and synchronisation. They are types, so that the timed loop has no branch.
fn run(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pointer| {
        session.split(|session, access| match (pointer, access) {
            (Pointer::Individual, Access::Independent) => synced::<Write>(session),
            (Pointer::Individual, Access::Collective) => synced::<WriteAll>(session),
            (Pointer::Explicit, Access::Independent) => synced::<WriteAt>(session),
            (Pointer::Explicit, Access::Collective) => synced::<WriteAtAll>(session),
            (Pointer::Shared, Access::Independent) => synced::<WriteShared>(session),
            (Pointer::Shared, Access::Collective) => synced::<WriteOrdered>(session),
            // Such calls start an access. Cases with them do not exist.
            (_, Access::Split) => Ok(()),
        })
    })
}

fn synced<C: Call>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, sync| match sync {
        FileSync::Each | FileSync::End => run_paced::<FileKernel<Writing<C, Synced>>, Mesh>(session),
        FileSync::Never => run_paced::<FileKernel<Writing<C, Unsynced>>, Mesh>(session),
    })
}

/// Writes of all blocks by calls `C`, which `S` completes.
struct Writing<C, S>(PhantomData<(C, S)>);

impl<C: Call, S: Completion> FileOperation for Writing<C, S> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = METHOD;
    const DIRECTION: Direction = C::DIRECTION;
    const ORDER: Order = C::ORDER;

    #[inline(always)]
    fn iterate(file: &File, blocks: u32) -> Result<()> {
        for block in 0..blocks {
            C::call(file, block)?;
        }
        S::complete(file)
    }
}

/// What follows the accesses of an iteration; nothing follows reads.
pub(crate) trait Completion: 'static {
    fn complete(file: &File) -> Result<()>;
}

/// `MPI_File_sync`.
pub(crate) enum Synced {}

/// Nothing.
pub(crate) enum Unsynced {}

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
