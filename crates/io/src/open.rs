//! `io.open`: every rank opens a file, writes a block and closes the file.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Method, Metric, ParameterValue, Work,
        payload::{Fill, Slots},
    },
    error::Result,
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{
    Mesh,
    file::{Files, Opening},
};

use crate::options;

ombx_core::inventory::submit!(
    options::of_files(
        Benchmark::custom(
            "io.open",
            "a file that every rank opens, writes a block to and closes",
            Metric::Latency,
            Open::METHOD,
            run,
        ),
        &[Pacing::PARAMETER, SyncHosts::PARAMETER, Files::PARAMETER],
    )
    .sizes("1")
    .iterates(&["MPI_File_open", "MPI_File_write_at", "MPI_File_close"], "t of the slowest rank")
);

fn run(session: &mut Session<'_>) -> Result<()> {
    run_paced::<Open, Mesh>(session)
}

/// A file that this rank opens and closes.
struct Open {
    file: Opening,
    slots: Slots,
    rank: Rank,
    /// Rank whose block this rank reads back.
    writer: Rank,
}

impl Kernel for Open {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "on every rank, MPI_File_open of a file that exists, MPI_File_write_at of a block at a \
                place of its own, and MPI_File_close",
        untimed: "creating and removing the file; synchronising the ranks before each sample; reading back \
                  what another rank has written, and checking it",
        like: "Open_Close of IMB-IO, in which every rank writes the first byte of the file",
    };

    fn work(case: &Case) -> Work {
        options::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = Slots::new(case.bytes.0, 1);
        let file = Opening::create(cx, options::directory(cx)?, case.get::<Files>(), slots)?;
        Ok(Open { rank: cx.rank(), writer: file.neighbour(cx.team), file, slots })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, self.file.outgoing());
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.file.iterate()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        fill.poison(self.writer, self.slots, self.file.incoming());
        self.file.read_back()?;
        Ok(fill.check(self.writer, self.slots, self.file.incoming(), self.rank))
    }
}
