//! `io.read`: every rank reads a block from a file.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Method, Metric, ParameterValue, Work,
        payload::{Check, Fill},
    },
    error::Result,
    measure::session::Session,
    pacing::{
        clock_sync::SyncHosts,
        paced_kernel::{Pacing, run_paced},
    },
};
use ombx_mpi::{
    Mesh,
    file::{Call, Files, Pointer, Read, ReadAll, ReadAt, ReadAtAll, ReadOrdered, ReadShared},
};

use crate::options::{self, Access, Blocks};

ombx_core::inventory::submit! {
    options::of_files(
        Benchmark::custom("io.read", "a block that every rank reads from a file", Metric::Bandwidth, METHOD, run),
        &[Pacing::PARAMETER, SyncHosts::PARAMETER, Pointer::PARAMETER, Access::PARAMETER, Files::PARAMETER],
    )
    .iterates(&["MPI_File_read"], "ranks S / t of the slowest rank")
}

const METHOD: Method = Method {
    timed: "a read of every rank. The call is MPI_File_read, with --pointer explicit MPI_File_read_at, with --pointer shared \
            MPI_File_read_shared, and with --access collective MPI_File_read_all, MPI_File_read_at_all or MPI_File_read_ordered. Data that the system keeps in memory is not read from the storage device again",
    untimed: "creating and writing the file; moving the pointer to the start of the file and synchronising the ranks before each sample; \
              checking",
    like: "S_Read_indv, P_Read_indv, P_Read_priv, C_Read_indv of IMB-IO and the same with expl and shared, which read on from where the \
           repetition before has ended",
};

/// Runs each combination of pointer and access. They are types, so that the timed loop has no branch.
fn run(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pointer| {
        session.split(|session, access| match (pointer, access) {
            (Pointer::Individual, Access::Independent) => run_paced::<Reading<Read>, Mesh>(session),
            (Pointer::Individual, Access::Collective) => run_paced::<Reading<ReadAll>, Mesh>(session),
            (Pointer::Explicit, Access::Independent) => run_paced::<Reading<ReadAt>, Mesh>(session),
            (Pointer::Explicit, Access::Collective) => run_paced::<Reading<ReadAtAll>, Mesh>(session),
            (Pointer::Shared, Access::Independent) => run_paced::<Reading<ReadShared>, Mesh>(session),
            (Pointer::Shared, Access::Collective) => run_paced::<Reading<ReadOrdered>, Mesh>(session),
            // Such calls start an access. Cases with them do not exist.
            (_, Access::Split) => Ok(()),
        })
    })
}

/// Reads of a rank by call `C`.
struct Reading<C> {
    blocks: Blocks,
    call: PhantomData<C>,
}

impl<C: Call> Kernel for Reading<C> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        options::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        Ok(Reading { blocks: Blocks::open(cx, case, C::ORDER)?, call: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.blocks.fill_reads(fill)
    }

    fn rewind(&mut self) -> Result<()> {
        self.blocks.file.rewind()
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        C::call(&self.blocks.file, 0)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        self.blocks.check_reads(fill)
    }
}
