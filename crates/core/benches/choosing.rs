//! What a user waits for before anything runs: the registry, and reading sizes.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ombx_core::{
    plan::parse_sizes,
    registry::{Benchmark, Registry},
    testkit::Probe,
};

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        $(ombx_core::inventory::submit! { Benchmark::of::<Probe<1>>($name, "of nothing") })*
    };
}

entries![
    "p2p.latency",
    "p2p.bw",
    "p2p.bibw",
    "p2p.mbw_mr",
    "p2p.multi_latency",
    "p2p.latency_mt",
    "p2p.fan_in",
    "p2p.link",
    "rma.put_latency",
    "rma.put_bw",
    "rma.put_bibw",
    "rma.get_latency",
    "rma.get_bw",
    "rma.acc_latency",
    "rma.get_acc_latency",
    "rma.fop_latency",
    "rma.cas_latency",
    "collective.bcast",
    "collective.bcast_acked",
    "collective.allreduce",
    "collective.alltoall",
    "collective.barrier",
    "sockets.latency",
    "sockets.bw",
];

fn registry(c: &mut Criterion) {
    let mut group = c.benchmark_group("registry");
    group.bench_function("load", |b| b.iter(|| Registry::load().unwrap().all().len()));
    let loaded = Registry::load().unwrap();
    for (what, pattern) in [("name", "rma.put_bw"), ("glob", "rma.*_latency"), ("nearest", "rma.putbw")] {
        group.bench_function(what, |b| b.iter(|| loaded.find(black_box(pattern)).map(|found| found.len())));
    }
    group.finish();
}

fn sizes(c: &mut Criterion) {
    let list: String = (1..2000).map(|n| format!("{n},")).collect::<String>() + "2000";
    c.bench_function("sizes/range", |b| b.iter(|| parse_sizes(black_box("1..4M"))));
    c.bench_function("sizes/list of 2000", |b| b.iter(|| parse_sizes(black_box(&list))));
}

criterion_group!(choosing, registry, sizes);
criterion_main!(choosing);
