//! `io.iwrite` and `io.iread`: an access that every rank starts, and its overlap with computation.

use std::{marker::PhantomData, time::Duration};

use ombx_core::{
    benchmark::{Benchmark, Compute, Method, Metric, ParameterValue},
    error::Result,
    measure::{
        overlap::{self, Computation, Overlappable, TestCalls},
        session::Session,
    },
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
};
use ombx_mpi::{
    Mesh,
    file::{
        Direction, File, Files, Iread, IreadAll, IreadAt, IreadAtAll, IreadShared, Iwrite, IwriteAll,
        IwriteAt, IwriteAtAll, IwriteShared, Order, Pointer, ReadAllBegin, ReadAtAllBegin, ReadOrderedBegin,
        Started, WriteAllBegin, WriteAtAllBegin, WriteOrderedBegin,
    },
};

use crate::{
    options::{self, Access, FileKernel, FileOperation, FileSync, check_started},
    write::{Completion, Synced, Unsynced},
};

const FORMULA: &str =
    "t of the slowest rank; overlap_percent = max(0, 100 - 100 (t - compute) / pure), unless --overlap none";

ombx_core::inventory::submit!(
    options::of_files(
        Benchmark::custom(
            "io.iwrite",
            "a block that every rank starts to write to a file, and its overlap with computation",
            Metric::Latency,
            WRITES,
            run_writes,
        ),
        &[
            Pacing::PARAMETER,
            SyncHosts::PARAMETER,
            Pointer::PARAMETER,
            Access::PARAMETER,
            Files::PARAMETER,
            FileSync::PARAMETER,
            TestCalls::PARAMETER,
            Computation::PARAMETER,
        ],
    )
    .made_of(|_, _| 1, check_started)
    .iterates(&["MPI_File_iwrite", "MPI_Test", "MPI_Wait", "MPI_File_sync"], FORMULA)
);

ombx_core::inventory::submit!(
    options::of_files(
        Benchmark::custom(
            "io.iread",
            "a block that every rank starts to read from a file, and its overlap with computation",
            Metric::Latency,
            READS,
            run_reads,
        ),
        &[
            Pacing::PARAMETER,
            SyncHosts::PARAMETER,
            Pointer::PARAMETER,
            Access::PARAMETER,
            Files::PARAMETER,
            TestCalls::PARAMETER,
            Computation::PARAMETER,
        ],
    )
    .made_of(|_, _| 1, check_started)
    .iterates(&["MPI_File_iread", "MPI_Test", "MPI_Wait"], FORMULA)
);

const WRITES: Method = Method {
    timed: "starting a write, computation that lasts as long as the write alone, with --tests calls of \
            MPI_Test in between, waiting for the write, and MPI_File_sync, unless --file-sync never; with \
            --overlap none without computation. The call is MPI_File_iwrite, MPI_File_iwrite_at or \
            MPI_File_iwrite_shared; with --access collective the same with _all; with --access split \
            MPI_File_write_all_begin and MPI_File_write_all_end, or the same with at_all and ordered",
    untimed: "the write alone (pure_us) and the computation alone (compute_us), which alternate with the \
              samples; creating the file; moving the pointer to the start of the file and synchronising \
              the ranks before each sample; reading back and checking",
    like: "S_IWrite_indv, P_IWrite_indv, P_IWrite_priv, C_IWrite_indv of IMB-IO and the same with expl and \
           shared; C_ with --access split. The t_pure of IMB is the time of the blocking write, and its \
           computation has a fixed length",
};

const READS: Method = Method {
    timed: "starting a read, computation that lasts as long as the read alone, with --tests calls of \
            MPI_Test in between, and waiting for the read; with --overlap none without computation. The \
            call is MPI_File_iread, MPI_File_iread_at or MPI_File_iread_shared; with --access collective \
            the same with _all; with --access split MPI_File_read_all_begin and MPI_File_read_all_end, or \
            the same with at_all and ordered",
    untimed: "the read alone (pure_us) and the computation alone (compute_us), which alternate with the \
              samples; creating and writing the file; moving the pointer to the start of the file and \
              synchronising the ranks before each sample; checking",
    like: "S_IRead_indv, P_IRead_indv, P_IRead_priv, C_IRead_indv of IMB-IO and the same with expl and \
           shared; C_ with --access split. The t_pure of IMB is the time of the blocking read, and its \
           computation has a fixed length",
};

/// Runs each combination of pointer and access of writes. They are types, so that the timed loop has no branch.
fn run_writes(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pointer| {
        session.split(|session, access| match (pointer, access) {
            (Pointer::Individual, Access::Independent) => synced::<Iwrite>(session),
            (Pointer::Individual, Access::Collective) => synced::<IwriteAll>(session),
            (Pointer::Individual, Access::Split) => synced::<WriteAllBegin>(session),
            (Pointer::Explicit, Access::Independent) => synced::<IwriteAt>(session),
            (Pointer::Explicit, Access::Collective) => synced::<IwriteAtAll>(session),
            (Pointer::Explicit, Access::Split) => synced::<WriteAtAllBegin>(session),
            (Pointer::Shared, Access::Independent) => synced::<IwriteShared>(session),
            // MPI has no such call. Cases with it do not exist.
            (Pointer::Shared, Access::Collective) => Ok(()),
            (Pointer::Shared, Access::Split) => synced::<WriteOrderedBegin>(session),
        })
    })
}

fn synced<N: Started>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, sync| match sync {
        FileSync::Each => overlapping::<N, Synced>(session),
        FileSync::Never => overlapping::<N, Unsynced>(session),
        // Cases with it do not exist.
        FileSync::End => Ok(()),
    })
}

/// Runs each combination of pointer and access of reads.
fn run_reads(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pointer| {
        session.split(|session, access| match (pointer, access) {
            (Pointer::Individual, Access::Independent) => overlapping::<Iread, Unsynced>(session),
            (Pointer::Individual, Access::Collective) => overlapping::<IreadAll, Unsynced>(session),
            (Pointer::Individual, Access::Split) => overlapping::<ReadAllBegin, Unsynced>(session),
            (Pointer::Explicit, Access::Independent) => overlapping::<IreadAt, Unsynced>(session),
            (Pointer::Explicit, Access::Collective) => overlapping::<IreadAtAll, Unsynced>(session),
            (Pointer::Explicit, Access::Split) => overlapping::<ReadAtAllBegin, Unsynced>(session),
            (Pointer::Shared, Access::Independent) => overlapping::<IreadShared, Unsynced>(session),
            // MPI has no such call. Cases with it do not exist.
            (Pointer::Shared, Access::Collective) => Ok(()),
            (Pointer::Shared, Access::Split) => overlapping::<ReadOrderedBegin, Unsynced>(session),
        })
    })
}

/// Runs a kernel and its overlap with computation, or the kernel alone.
fn overlapping<N: Started, S: Completion>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, computation| match computation {
        Computation::Overlapped => overlap::run::<FileKernel<Starting<N, S>>, Mesh>(session),
        // Tests are calls between slices of computation.
        Computation::None => {
            session.without(&[TestCalls::PARAMETER], run_paced::<FileKernel<Starting<N, S>>, Mesh>)
        }
    })
}

/// An access of one block that `N` starts, which `S` completes.
struct Starting<N, S>(PhantomData<(N, S)>);

impl<N: Started, S: Completion> FileOperation for Starting<N, S> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = match N::DIRECTION {
        Direction::Write => WRITES,
        Direction::Read => READS,
    };
    const DIRECTION: Direction = N::DIRECTION;
    const ORDER: Order = N::ORDER;

    #[inline(always)]
    fn iterate(file: &File, _: u32) -> Result<()> {
        N::overlapped(file, 0, || ())?;
        S::complete(file)
    }
}

impl<N: Started, S: Completion> Overlappable for FileKernel<Starting<N, S>> {
    type Computation = Compute;

    fn computation(&self, time: Duration) -> Compute {
        Compute::lasting(time)
    }

    #[inline(always)]
    fn overlapped(&mut self, tests: u32, slice: impl FnMut()) -> Result<()> {
        N::overlapped(&self.file, tests, slice)?;
        S::complete(&self.file)
    }
}
