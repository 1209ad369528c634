//! Cost of measuring: a reading of the clock, a batch of the timed loop, conversion of stamps to samples.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ombx_core::{
    benchmark::{Case, Context, Kernel, Method},
    clock::Clock,
};
use ombx_record::{
    error::Result,
    result::{Metric, Work},
};
use ombx_testkit::time_batches;

/// A kernel of one addition, so that the cost of the loop remains.
struct Addition(u64);

impl Kernel for Addition {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "an addition", untimed: "everything else", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(_: &Context<'_>, _: &Case) -> Result<Self> {
        Ok(Addition(0))
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        self.0 = black_box(self.0) + 1;
        Ok(())
    }
}

fn stamp(c: &mut Criterion) {
    let clock = Clock::measured();
    c.bench_function("stamp", |b| b.iter(|| black_box(clock.raw())));
}

fn timed_loop(c: &mut Criterion) {
    let clock = Clock::measured();
    let mut group = c.benchmark_group("timed_loop");
    for batch in [1, 10, 1000] {
        group.throughput(Throughput::Elements(batch * 1000));
        group.bench_with_input(BenchmarkId::new("1000 samples of", batch), &batch, |b, batch| {
            let (mut kernel, mut stamps) = (Addition(0), vec![0; 1001]);
            b.iter(|| time_batches(&mut kernel, &clock, *batch, black_box(&mut stamps)));
        });
    }
    group.finish();
}

fn samples(c: &mut Criterion) {
    let clock = Clock::measured();
    let stamps: Vec<u64> = (0..1001).map(|i| i * 1000).collect();
    let mut group = c.benchmark_group("samples");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("1000 stamps to nanoseconds", |b| {
        let mut kept: Vec<u64> = Vec::with_capacity(1000);
        b.iter(|| {
            kept.clear();
            kept.extend(black_box(&stamps).windows(2).map(|w| clock.nanos(w[0], w[1])));
        });
    });
    group.finish();
}

criterion_group!(measuring, stamp, timed_loop, samples);
criterion_main!(measuring);
