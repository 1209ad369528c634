//! `acme.copy`: memory bandwidth of a host while every rank copies. It bounds the bandwidth of messages in shared memory.

use std::hint::black_box;

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, Work,
        payload::{Fill, Slots},
    },
    error::{Error, Result},
    result::Check,
    unit::Rank,
};

/// Copy between two buffers of a rank.
struct Copy {
    rank: Rank,
    slots: Slots,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Kernel for Copy {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "one copy of a buffer, on every rank at the same time",
        untimed: "buffers, filling and checking them",
        like: "STREAM's Copy, of as many bytes as a message has",
    };

    fn work(case: &Case) -> Work {
        Work { bytes: case.bytes.0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Copy> {
        let slots = Slots::new(case.bytes.0, 1);
        cx.afford(2 * slots.total())?;
        let length = usize::try_from(slots.total())
            .map_err(|_| Error::unsupported("the buffer is larger than the address space"));
        let length = cx.agree(length)?;
        Ok(Copy { rank: cx.rank(), slots, from: vec![1; length], to: vec![2; length] })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, &mut self.from);
        fill.poison(self.rank, self.slots, &mut self.to);
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        black_box(&mut self.to).copy_from_slice(black_box(&self.from));
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(fill.check(self.rank, self.slots, &self.to, self.rank))
    }
}

ombx_core::inventory::submit!(
    Benchmark::new::<Copy>("acme.copy", "a copy within the memory of each rank")
        .layout(Layout::Everyone { least: 1 })
        .sizes("4K..4M:x4")
);
