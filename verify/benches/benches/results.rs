//! Benchmarks of summaries, intervals, and writing and reading of files.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ombx_core::{
    result::{Measurement, Samples},
    stats::{Summary, order_bounds},
};
use ombx_results::file::{self, Record};

const GOLDEN: &str = include_str!("../../../crates/results/tests/golden/one_launch.jsonl");

/// Returns times in whole nanoseconds: most similar, a few far off, unordered.
fn times(n: u64) -> Vec<u64> {
    let mut state = 1u64;
    let mut next = |range: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % range
    };
    (0..n).map(|_| 20_000 + next(400) + if next(50) == 0 { next(30_000) } else { 0 }).collect()
}

fn summaries(c: &mut Criterion) {
    let mut group = c.benchmark_group("summary");
    for n in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
        let legs: Vec<f64> = times(n).into_iter().map(|ns| ns as f64 / 40.0).collect();
        group.throughput(Throughput::Elements(n));
        group.bench_with_input(BenchmarkId::new("independent", n), &legs, |b, x| b.iter(|| Summary::of(x)));
    }
    // Dependent samples: medians of longer and longer blocks are tried.
    let mut level = 0.0;
    let walk: Vec<f64> = times(100_000)
        .into_iter()
        .map(|ns| {
            level = 0.99 * level + ns as f64 - 20_200.0;
            1e6 + level
        })
        .collect();
    group.throughput(Throughput::Elements(100_000));
    group.bench_with_input(BenchmarkId::new("dependent", 100_000), &walk, |b, x| b.iter(|| Summary::of(x)));
    group.finish();
}

fn bounds(c: &mut Criterion) {
    let mut group = c.benchmark_group("order_bounds");
    for n in [100, 10_000, 1_000_000] {
        group.bench_with_input(BenchmarkId::new("median", n), &n, |b, n| {
            b.iter(|| order_bounds(black_box(*n), 0.5))
        });
        group.bench_with_input(BenchmarkId::new("p99", n), &n, |b, n| {
            b.iter(|| order_bounds(black_box(*n), 0.99))
        });
    }
    group.finish();
}

fn file(c: &mut Criterion) {
    let mut golden = file::read(GOLDEN.as_bytes()).unwrap().runs.remove(0);
    let run = Record::Run(Box::new(golden.run));
    let samples =
        vec![Samples { rank: 0, thread: 0, batch: 20, elapsed_ns: times(200), ..Samples::default() }];
    let row = Measurement { samples, ..golden.rows.swap_remove(1) };
    let case = Record::Launch(Box::new(row));
    let write = || {
        let mut out = Vec::new();
        file::write(&mut out, &run).unwrap();
        (0..1000).for_each(|_| file::write(&mut out, &case).unwrap());
        out
    };
    let bytes = write();
    let mut group = c.benchmark_group("file of 1000 rows of 200 samples");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("write", |b| b.iter(write));
    group.bench_function("read", |b| b.iter(|| file::read(black_box(bytes.as_slice()))));
    group.finish();
}

criterion_group!(results, summaries, bounds, file);
criterion_main!(results);
