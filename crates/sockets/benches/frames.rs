//! What a frame costs on its way: between ranks and their coordinator, never in a timed loop.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ombx_sockets::{
    frame::{Frame, MOST},
    token::Token,
};

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame");
    for bytes in [16, 1024, 65_536, MOST] {
        let frame = Frame::new(3, vec![7; bytes]);
        let encoded = frame.encode().unwrap();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::new("encode", bytes), &frame, |b, frame| {
            b.iter(|| frame.encode());
        });
        group.bench_with_input(BenchmarkId::new("parse", bytes), &encoded, |b, encoded| {
            b.iter(|| Frame::parse(black_box(encoded), MOST));
        });
        group.bench_with_input(BenchmarkId::new("read", bytes), &encoded, |b, encoded| {
            b.iter(|| Frame::read(&mut black_box(encoded.as_slice()), MOST));
        });
    }
    group.finish();
}

fn token(c: &mut Criterion) {
    let token = Token::random().unwrap();
    let shown = *token.bytes();
    c.bench_function("token/is", |b| b.iter(|| token.is(black_box(&shown))));
}

criterion_group!(sockets, frames, token);
criterion_main!(sockets);
