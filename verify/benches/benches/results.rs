//! Benchmarks of summaries, intervals, writing and reading of files, estimates and verdicts.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ombx_benches::{WORK, times};
use ombx_record::stats::{Summary, order_bounds};

fn summaries(c: &mut Criterion) {
    let mut group = c.benchmark_group("summary");
    for n in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
        let legs: Vec<f64> = times(n, 1).into_iter().map(|ns| ns as f64 / 40.0).collect();
        group.throughput(Throughput::Elements(n));
        group.bench_with_input(BenchmarkId::new("independent", n), &legs, |b, x| b.iter(|| Summary::new(x)));
    }
    // Dependent samples: medians of longer and longer blocks are tried.
    let mut level = 0.0;
    let walk: Vec<f64> = times(100_000, 1)
        .into_iter()
        .map(|ns| {
            level = 0.99 * level + ns as f64 - 20_200.0;
            1e6 + level
        })
        .collect();
    group.throughput(Throughput::Elements(100_000));
    group.bench_with_input(BenchmarkId::new("dependent", 100_000), &walk, |b, x| b.iter(|| Summary::new(x)));
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

fn files(c: &mut Criterion) {
    for (name, prepare) in WORK {
        let work = prepare();
        c.bench_function(name, |b| b.iter(&work));
    }
}

criterion_group!(results, summaries, bounds, files);
criterion_main!(results);
