//! Benchmarks without messages between ranks: `collective.reduce_local`, the time in which a rank combines two buffers, and
//! `collective.init`, the time that MPI takes to start.

use ombx_core::{
    benchmark::{
        Aggregation, Benchmark, Case, Context, ElementType, Kernel, Layout, Method, Metric, ParameterValue,
        ReductionOp, Work,
        memory::BufferMemory,
        payload::{Accumulation, Fill, Slots},
        reduction,
    },
    error::{Error, Result},
    measure::{
        row::{KernelKind, announce, each_case},
        session::Session,
    },
    result::{Check, Measurement, Samples},
};
use ombx_mpi::{Mpi, collective::LocalReduction};

use crate::entry::SIZES;

ombx_core::inventory::submit!(
    Benchmark::new::<ReduceLocal>(
        "collective.reduce_local",
        "a block of every rank combined with another one, without communication"
    )
    .layout(Layout::Everyone { least: 1 })
    .with(&[ElementType::PARAMETER, ReductionOp::PARAMETER, BufferMemory::PARAMETER])
    .sizes(SIZES)
    .made_of(reduction::element_bytes, reduction::check_case)
    .iterates(&["MPI_Reduce_local"], "t of the slowest rank")
);

/// A local reduction of a rank.
struct ReduceLocal {
    local: LocalReduction,
    accumulation: Accumulation,
    slots: Slots,
}

/// Returns element type and operation.
fn choices(case: &Case) -> (ElementType, ReductionOp) {
    (case.get::<ElementType>().of_size(case.bytes.0), case.get())
}

impl Kernel for ReduceLocal {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "calls of MPI_Reduce_local one after the other, on every rank at the same time; the figure \
                is the time of the slowest rank",
        untimed: "buffers, filling and checking",
        like: "Reduce_local of IMB-MPI1, which reads the clock before and after each call",
    };

    fn work(case: &Case) -> Work {
        Work { bytes: case.bytes.0 * u64::from(case.ranks), ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let (element, op) = choices(case);
        let slots = Slots::new(case.bytes.0, 1);
        Ok(ReduceLocal {
            local: LocalReduction::open(cx, slots, element, op)?,
            accumulation: Accumulation { element, op, memory: cx.rank(), operand: cx.rank() },
            slots,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        self.accumulation.write_operand(fill, self.slots, self.local.operand());
        self.accumulation.write_memory(fill, self.slots, self.local.memory());
        Ok(())
    }

    fn iterations_per_check(case: &Case) -> u64 {
        let (element, op) = choices(case);
        Accumulation::iterations_per_check(element, op)
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.local.call()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let rank = self.accumulation.memory;
        Ok(self.accumulation.check(fill, fill.iterations, self.slots, self.local.memory(), rank))
    }
}

ombx_core::inventory::submit!(
    Benchmark::custom(
        "collective.init",
        "start of MPI on all ranks: one sample in each launch",
        Metric::Latency,
        METHOD,
        run
    )
    .layout(Layout::Everyone { least: 1 })
    .iterates(&["MPI_Init"], "t of the slowest rank")
    .without_sizes()
    .once()
    .osu("osu_init", "OSU MPI Init Test")
    .osu_with("osu_hello", "OSU MPI Hello World Test", &[])
);

const METHOD: Method = Method {
    timed: "MPI_Init, or MPI_Init_thread with --threading, once in each launch, on every rank; with --init \
            session instead MPI_Session_init, MPI_Group_from_session_pset and MPI_Comm_create_from_group",
    untimed: "starting the processes; a rank that starts early waits for the others inside the call",
    like: "osu_init of OMB, which prints the mean, the smallest and the largest time of the ranks",
};

fn run(session: &mut Session<'_>) -> Result<()> {
    each_case(session, row)
}

/// Returns the row of this launch. Collective; only that of rank 0 has the times of all ranks.
fn row(session: &mut Session<'_>, case: &Case) -> Result<Measurement> {
    let kind = KernelKind::with_work(Metric::Latency, |_| Work { bytes: 0, ops: 1, legs: 1 });
    let empty = announce(session, kind, case, Aggregation::Slowest)?;
    let mine = Mpi::initialization_time().ok_or_else(|| Error::fabric("MPI was not started by ombx"))?;
    let all: Option<Vec<u64>> = session.team.gather_messages(&(mine.as_nanos() as u64))?;
    let of_rank = |(rank, ns)| Samples { rank, batch: 1, elapsed_ns: vec![ns], ..Samples::default() };
    let samples: Vec<Samples> = (0..).zip(all.unwrap_or_default()).map(of_rank).collect();
    let summary = Measurement::summarise(&samples, 1, session.clock.facts());
    Ok(Measurement { check: Check::Unsupported, trust: session.standing.to_vec(), samples, summary, ..empty })
}
