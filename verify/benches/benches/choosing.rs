//! Cost of selecting rows before a run: the registry, sizes, and the cases of a plan.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ombx_core::{
    benchmark::{Benchmark, Choice, Registry},
    measure::{
        plan::Plan,
        session::{selected, sizes_of},
    },
};
use ombx_record::unit::parse_sizes;
use ombx_testkit::Probe;

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        $(ombx_core::inventory::submit! { Benchmark::new::<Probe<1>>($name, "an empty iteration") })*
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
    group.finish();
}

fn sizes(c: &mut Criterion) {
    let list: String = (1..2000).map(|n| format!("{n},")).collect::<String>() + "2000";
    c.bench_function("sizes/range", |b| b.iter(|| parse_sizes(black_box("1..4M"))));
    c.bench_function("sizes/list of 2000", |b| b.iter(|| parse_sizes(black_box(&list))));
}

/// Counts the rows of a plan, as the command line does before ranks start.
fn plan(c: &mut Criterion) {
    let loaded = Registry::load().unwrap();
    let choices: Vec<Choice> = loaded.all().iter().map(|bench| Choice { bench, preset: &[] }).collect();
    let plan = Plan { sizes: Some(parse_sizes("1..4M").unwrap()), ..Plan::default() };
    c.bench_function("plan/rows of 24 benchmarks", |b| {
        b.iter(|| {
            let rows = choices.iter().map(|choice| {
                let values = choice
                    .bench
                    .parameters()
                    .map(|parameter| selected(parameter, *choice, &plan).len().max(1));
                sizes_of(choice.bench, &plan).map_or(0, |sizes| sizes.len()) * values.product::<usize>()
            });
            black_box(rows.sum::<usize>())
        });
    });
}

criterion_group!(choosing, registry, sizes, plan);
criterion_main!(choosing);
