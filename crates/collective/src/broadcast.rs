//! Four ways to time a broadcast, for comparison with `collective.bcast`: `collective.bcast_round`, `bcast_window`,
//! `bcast_ack` and `bcast_acked`.

pub mod acked;
pub mod back_to_back;
pub mod kernel;
#[cfg(test)]
mod tests;
pub mod tree;

use ombx_core::{
    benchmark::{AxisValue, Benchmark, Kernel, Layout, Method, Metric},
    error::Result,
    measure::session::Session,
    pacing::{clock_sync::SyncHosts, pace::Pacing},
};
use ombx_mpi::{Broadcast, Mesh};

use crate::{
    broadcast::{
        acked::{AckCorrection, run_acked, run_last_ack},
        back_to_back::{BackToBack, run_back_to_back},
        kernel::SingleBroadcast,
        tree::{Algorithm, Tree},
    },
    entry::SIZES,
};

const EVERYONE: Layout = Layout::Everyone { least: 2 };

const ACKED: Method = Method {
    timed: "on the root, for each other rank in turn: a broadcast and an empty message back from that rank, alternating with \
            empty round trips with it; the figure is the first minus half the second, of the slowest rank",
    untimed: "one iteration before each block, buffers, filling and checking them",
    like: "de Supinski and Karonis (HPDC'99); goptest, which subtracts a whole round trip measured once and cold",
};

const LAST_ACK: Method = Method {
    timed: "on the root: a broadcast and an empty message back from the last rank; --ack-correction says what is subtracted, by \
            default nothing",
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
    Benchmark::custom("collective.bcast_round", "broadcasts back to back from rotating roots; they overlap",
        Metric::Latency, <BackToBack<Broadcast> as Kernel>::METHOD, run_back_to_back::<BackToBack<Broadcast>, Mesh>)
        .layout(EVERYONE).sizes(SIZES)
}
ombx_core::inventory::submit! {
    Benchmark::paced::<SingleBroadcast<Broadcast>, Mesh>("collective.bcast_window", "one broadcast, all ranks starting at an agreed time")
        .axes(&[Pacing::AXIS, SyncHosts::AXIS]).usually(&[("pace", "window")]).above_one_way().sizes(SIZES)
}
ombx_core::inventory::submit! {
    Benchmark::custom("collective.bcast_ack", "a broadcast that the last rank acknowledges", Metric::Latency, LAST_ACK,
        run_last_ack::<Broadcast, Mesh>)
        .layout(Layout::Star).axes(&[AckCorrection::AXIS]).usually(&[("ack-correction", "none")]).sizes(SIZES)
}
ombx_core::inventory::submit! {
    Benchmark::custom("collective.bcast_acked", "a broadcast that each rank acknowledges in turn, without the acknowledgement's time",
        Metric::Latency, ACKED, acked)
        .layout(Layout::Star).axes(&[AckCorrection::AXIS, Algorithm::AXIS]).sizes(SIZES)
}
