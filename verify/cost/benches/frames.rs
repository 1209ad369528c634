//! Cost of a frame between ranks and their coordinator, outside timed loops.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ombx_sockets::control::{
    Token,
    channel::{Frame, MAX_BODY},
};

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame");
    for bytes in [16, 1024, 65_536, MAX_BODY] {
        let frame = Frame(vec![7; bytes]);
        let encoded = frame.encode().unwrap();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_with_input(BenchmarkId::new("encode", bytes), &frame, |b, frame| {
            b.iter(|| frame.encode());
        });
        group.bench_with_input(BenchmarkId::new("parse", bytes), &encoded, |b, encoded| {
            b.iter(|| Frame::parse(black_box(encoded), MAX_BODY));
        });
        group.bench_with_input(BenchmarkId::new("read", bytes), &encoded, |b, encoded| {
            b.iter(|| Frame::read(&mut black_box(encoded.as_slice()), MAX_BODY));
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
