//! `collective.reduce_local`: the time in which a rank combines two buffers, without communication.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, ElementType, Kernel, Layout, Method, Metric, ParameterValue, ReductionOp,
        Work,
        memory::BufferMemory,
        payload::{Accumulation, Check, Fill, Slots},
        reduction,
    },
    error::Result,
};
use ombx_mpi::collective::LocalReduction;

use crate::entry::SIZES;

ombx_core::inventory::submit! {
    Benchmark::of::<ReduceLocal>("collective.reduce_local", "a block of every rank combined with another one, without communication")
        .layout(Layout::Everyone { least: 1 })
        .with(&[ElementType::PARAMETER, ReductionOp::PARAMETER, BufferMemory::PARAMETER])
        .sizes(SIZES)
        .made_of(reduction::element_bytes, reduction::check_case)
        .iterates(&["MPI_Reduce_local"], "t of the slowest rank")
}

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
        timed: "calls of MPI_Reduce_local one after the other, on every rank at the same time; the figure is the time of the slowest rank",
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
