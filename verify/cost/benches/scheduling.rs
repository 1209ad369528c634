//! Cost of finding a partner. It must not grow with the number of ranks.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ombx_record::unit::Rank;
use ombx_sweep::schedule::Mode;

fn partner(c: &mut Criterion) {
    let mut group = c.benchmark_group("partner");
    for ranks in [2, 2_000, 1_799_999, 1_800_000] {
        for (order, seed) in [("plain", None), ("shuffled", Some(7))] {
            let schedule = Mode::Parallel.schedule(ranks, seed);
            group.bench_function(format!("{order}/{ranks}"), |b| {
                b.iter(|| schedule.partner(black_box(Rank(1)), black_box(ranks / 3)));
            });
        }
    }
    group.finish();
}

criterion_group!(scheduling, partner);
criterion_main!(scheduling);
