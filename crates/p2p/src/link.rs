//! `p2p.link`: the three patterns of LinkTest between two ranks.

use crate::{PING_PONG, run_two_sided};
use ombx_core::{
    benchmark::{
        Benchmark, Method, Metric, ParameterValue,
        memory::{BufferMemory, Staged},
    },
    error::Result,
    measure::session::Session,
    two_sided::pattern::{Bidirectional, LinkPattern, Semidirectional, Unidirectional},
};

const METHOD: Method = Method {
    timed: "for messages of S bytes: semidirectional, a ping-pong, S divided by half the time; bidirectional, two ping-pongs at once, \
            2 S divided by half the time; unidirectional, a window of W blocking messages and one acknowledgement, W S divided by the time",
    untimed: "connections, buffers, filling and checking them",
    like: "LinkTest's three patterns",
};

fn by_pattern(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pattern| match pattern {
        LinkPattern::Bidirectional => run_two_sided::<Bidirectional>(session),
        LinkPattern::Unidirectional => run_two_sided::<Unidirectional>(session),
        LinkPattern::Semidirectional => run_two_sided::<Semidirectional>(session),
    })
}

ombx_core::inventory::submit! {
    Benchmark::custom("p2p.link", "one link under LinkTest's patterns", Metric::Bandwidth, METHOD, by_pattern)
        .iterates(PING_PONG, "semidirectional: 2 S / t; bidirectional: 4 S / t; unidirectional: W S / t")
        .streaming_only(LinkPattern::PARAMETER, LinkPattern::Unidirectional.name()).with(&[LinkPattern::PARAMETER, BufferMemory::PARAMETER, Staged::PARAMETER])
}
