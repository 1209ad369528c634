//! `p2p.link`: the three patterns of LinkTest between two ranks.

use crate::run_two_sided;
use ombx_core::{
    benchmark::{
        entry::Benchmark,
        work::{Method, Metric},
    },
    error::{Error, Result},
    measure::session::Session,
    two_sided::pattern::{Bidirectional, PATTERNS, Semidirectional, Unidirectional},
};

const METHOD: Method = Method {
    timed: "semidirectional: a ping-pong, S by half its time; bidirectional: two ping-pongs at once, 2 S by half their time; \
            unidirectional: a window of blocking messages and one receipt, S by its part of that time",
    untimed: "connections, buffers, filling and checking them",
    like: "LinkTest's three patterns",
};

fn by_pattern(session: &mut Session<'_>) -> Result<()> {
    session.split(&PATTERNS, |session, value| match value {
        "bidirectional" => run_two_sided::<Bidirectional>(session),
        "unidirectional" => run_two_sided::<Unidirectional>(session),
        "semidirectional" => run_two_sided::<Semidirectional>(session),
        other => Err(Error::usage(format!("no benchmark runs {other} links"))),
    })
}

ombx_core::inventory::submit! {
    Benchmark::custom("p2p.link", "one link under LinkTest's patterns", Metric::Bandwidth, METHOD, by_pattern)
        .streaming().axes(&[&PATTERNS])
}
