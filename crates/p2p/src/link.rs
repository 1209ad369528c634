//! `p2p.link`: the three patterns of LinkTest between two ranks.

use ombx_core::{
    case::{Axis, Named},
    engine::{Session, run},
    error::Result,
    kernel::{Method, Metric},
    pattern::{Bidirectional, Over, Semidirectional, Unidirectional},
    registry::Benchmark,
};
use ombx_mpi::Channel;

const PATTERN: Axis = Axis {
    name: "pattern",
    about: "how two ranks load a link: a ping-pong, two ping-pongs at once, or messages one way and a receipt",
    values: &["semidirectional", "bidirectional", "unidirectional"],
    default: "semidirectional",
    named: Named::Always,
};

const METHOD: Method = Method {
    timed: "semidirectional: a ping-pong, S by half its time; bidirectional: two ping-pongs at once, 2 S by half their time; \
            unidirectional: a window of blocking messages and one receipt, S by its part of that time",
    untimed: "connections, buffers, filling and checking them",
    like: "LinkTest's three patterns",
};

fn by_pattern(session: &mut Session<'_>) -> Result<()> {
    session.split(&PATTERN, |session, value| match value {
        "bidirectional" => run::<Over<Bidirectional, Channel>>(session),
        "unidirectional" => run::<Over<Unidirectional, Channel>>(session),
        _ => run::<Over<Semidirectional, Channel>>(session),
    })
}

ombx_core::inventory::submit! {
    Benchmark::custom("p2p.link", "one link under LinkTest's patterns", Metric::Bandwidth, METHOD, by_pattern)
        .streaming().axes(&[&PATTERN])
}
