//! `collective.bcast_round`, `bcast_window`, `bcast_ack` and `bcast_acked`: four ways to time a broadcast, to be seen beside
//! `collective.bcast`.

use crate::broadcast::{
    acked::{AckCorrection, run_acked, run_last_ack},
    kernel::{Once, Round},
    tree::{Algorithm, Tree},
};
use ombx_core::benchmark::axis::AxisValue;
pub mod acked;
pub mod kernel;
#[cfg(test)]
mod sim_broadcast;
pub mod tree;

use ombx_core::{
    benchmark::{
        entry::Benchmark,
        kernel::Kernel,
        layout::Layout,
        work::{Method, Metric},
    },
    error::Result,
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, pace::Pacing, paced::run_back_to_back},
};
use ombx_mpi::{Broadcast, Mesh};

/// Sizes of a collective.
const SIZES: &str = "1..1M";
const EVERYONE: Layout = Layout::Everyone { least: 2 };

const ACKED: Method = Method {
    timed: "for every rank but the root in turn, on the root: a broadcast and an empty message back from that rank, by turns with \
            empty round trips with it; the figure is the first less half the second, and the slowest rank's counts",
    untimed: "one iteration before each block, buffers, filling and checking them",
    like: "de Supinski and Karonis (HPDC'99); goptest, which subtracts a whole round trip measured once and cold",
};

const LAST_ACK: Method = Method {
    timed: "on the root: a broadcast and an empty message back from the last rank; nothing is subtracted unless --ack-correction says so",
    untimed: "one iteration before each block, buffers, filling and checking them",
    like: "osu_bcast of OMB 3.x, in which the last rank acknowledges",
};

fn acked(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, algorithm| match algorithm {
        Algorithm::Tree => run_acked::<Tree<Mesh>, Mesh>(session),
        Algorithm::Library => run_acked::<Broadcast, Mesh>(session),
    })
}

ombx_core::inventory::submit! {
    Benchmark::custom("collective.bcast_round", "broadcasts back to back from one root after the other: they overlap",
        Metric::Latency, <Round<Broadcast> as Kernel>::METHOD, run_back_to_back::<Round<Broadcast>, Mesh>)
        .layout(EVERYONE).sizes(SIZES)
}
ombx_core::inventory::submit! {
    Benchmark::paced::<Once<Broadcast>, Mesh>("collective.bcast_window", "one broadcast, all ranks starting at an agreed time")
        .axes(&[Pacing::AXIS, SyncHosts::AXIS]).usually(&[("pace", "window")]).above_one_way().sizes(SIZES)
}
ombx_core::inventory::submit! {
    Benchmark::custom("collective.bcast_ack", "a broadcast that the last rank acknowledges", Metric::Latency, LAST_ACK,
        run_last_ack::<Broadcast, Mesh>)
        .layout(Layout::Star).axes(&[AckCorrection::AXIS]).usually(&[("ack-correction", "none")]).sizes(SIZES)
}
ombx_core::inventory::submit! {
    Benchmark::custom("collective.bcast_acked", "a broadcast that every rank acknowledges in turn, less the acknowledgement",
        Metric::Latency, ACKED, acked)
        .layout(Layout::Star).axes(&[AckCorrection::AXIS, Algorithm::AXIS]).sizes(SIZES)
}
