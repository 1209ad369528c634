//! Four ways to time a broadcast, for comparison with `collective.bcast`: `collective.bcast_round`, `bcast_window`,
//! `bcast_ack` and `bcast_acked`. All of them time the broadcast of the library, and broadcasts that ombx makes of messages.

pub mod acked;
pub mod kernel;
#[cfg(test)]
mod tests;

use ombx_core::{
    benchmark::{
        Benchmark, Case, Kernel, Layout, Method, Metric, ParameterValue, Root, derived::block_bytes,
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    measure::{plan::Plan, session::Session},
    pacing::{clock_sync::SyncHosts, paced_kernel::run_paced, start::Pacing},
};
use ombx_mpi::{Mesh, collective::Bcast};

use crate::{
    broadcast::{
        acked::{AckCorrection, run_acked, run_last_ack},
        kernel::{
            Algorithm, BackToBack, Binomial, Broadcast, Linear, SingleBroadcast, Tree, run_back_to_back,
        },
    },
    entry::{FORMULA, SIZES, check_broadcast, run_blocking},
};

/// Calls of a broadcast of the library. With `--by linear` and `--by binomial` ombx sends its messages.
const BCAST: &[&str] = &["MPI_Bcast"];
const ACKNOWLEDGED: &[&str] = &["MPI_Bcast", "MPI_Send", "MPI_Recv"];

const EVERYONE: Layout = Layout::Everyone { least: 2 };

const EACH_ACK: Method = Method {
    timed: "on the root, for each other rank in turn: a broadcast and an empty message back from that \
            rank, alternating with empty round trips with it; the figure is the first minus half the \
            second, of the slowest rank",
    untimed: "one iteration before each block, buffers, filling and checking them",
    like: "de Supinski and Karonis (HPDC'99); goptest, which subtracts a whole round trip measured once and cold",
};

const LAST_ACK: Method = Method {
    timed: "on the root: a broadcast and an empty message back from the last rank, alternating with empty \
            round trips with it; the figure is the first minus half the second",
    untimed: "one iteration before each block, buffers, filling and checking them",
    like: "osu_bcast of OMB 3.x, which measures the round trips once, before the broadcasts",
};

/// A way to time a broadcast.
trait Timing {
    /// Measures all cases of one implementation.
    fn run<B: Broadcast>(session: &mut Session<'_>) -> Result<()>;
}

/// Back to back from rotating roots.
enum Round {}

/// One at a time, after the ranks were synchronised.
enum Single {}

/// Acknowledged by the last rank.
enum LastAck {}

/// Acknowledged by each rank in turn.
enum EachAck {}

impl Timing for Round {
    fn run<B: Broadcast>(session: &mut Session<'_>) -> Result<()> {
        run_back_to_back::<BackToBack<B>, Mesh>(session)
    }
}

impl Timing for Single {
    fn run<B: Broadcast>(session: &mut Session<'_>) -> Result<()> {
        if session.get::<Root>() == Root::Rotating {
            run_paced::<SingleBroadcast<B, true>, Mesh>(session)
        } else {
            run_paced::<SingleBroadcast<B>, Mesh>(session)
        }
    }
}

impl Timing for LastAck {
    fn run<B: Broadcast>(session: &mut Session<'_>) -> Result<()> {
        run_last_ack::<B, Mesh>(session)
    }
}

impl Timing for EachAck {
    fn run<B: Broadcast>(session: &mut Session<'_>) -> Result<()> {
        run_acked::<B, Mesh>(session)
    }
}

/// Measures every selected implementation.
fn every_algorithm<T: Timing>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, algorithm| match algorithm {
        Algorithm::Library => T::run::<ombx_mpi::Broadcast>(session),
        Algorithm::Linear => T::run::<Tree<Linear, Mesh>>(session),
        Algorithm::Binomial => T::run::<Tree<Binomial, Mesh>>(session),
    })
}

/// Measures `collective.bcast`. The broadcast of the library is that of the table of operations.
pub(crate) fn run_bcast(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, algorithm| match algorithm {
        Algorithm::Library => run_blocking::<Bcast>(session),
        Algorithm::Linear => Single::run::<Tree<Linear, Mesh>>(session),
        Algorithm::Binomial => Single::run::<Tree<Binomial, Mesh>>(session),
    })
}

ombx_core::inventory::submit!(
    Benchmark::custom(
        "collective.bcast_round",
        "broadcasts back to back from rotating roots; they overlap",
        Metric::Latency,
        <BackToBack<ombx_mpi::Broadcast> as Kernel>::METHOD,
        every_algorithm::<Round>
    )
    .iterates(BCAST, "t per broadcast")
    .layout(EVERYONE)
    .with(&[Algorithm::PARAMETER])
    .sizes(SIZES)
);
ombx_core::inventory::submit!(
    Benchmark::custom(
        "collective.bcast_window",
        "one broadcast, all ranks starting at an agreed time",
        Metric::Latency,
        <SingleBroadcast<ombx_mpi::Broadcast> as Kernel>::METHOD,
        every_algorithm::<Single>
    )
    .iterates(BCAST, FORMULA)
    .layout(EVERYONE)
    .with(&[Pacing::PARAMETER, SyncHosts::PARAMETER, Algorithm::PARAMETER])
    .usually(&[("pace", "window")])
    .above_one_way()
    .sizes(SIZES)
);
/// Returns an error with the reason if the root of an acknowledged broadcast rotates, or if a broadcast by ombx is to have a type.
fn check_acknowledged(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    if case.get::<Root>() == Root::Rotating {
        return Err("an acknowledged broadcast has one root: give its rank, such as --root 1".to_owned());
    }
    check_broadcast(case, plan)
}

ombx_core::inventory::submit!(
    Benchmark::custom(
        "collective.bcast_ack",
        "a broadcast that the last rank acknowledges, without the acknowledgement's time",
        Metric::Latency,
        LAST_ACK,
        every_algorithm::<LastAck>
    )
    .iterates(ACKNOWLEDGED, "t - round trip / 2")
    .layout(Layout::Star)
    .with(&[AckCorrection::PARAMETER, Algorithm::PARAMETER, MESSAGE_TYPE, Root::PARAMETER])
    .sizes(SIZES)
    .made_of(block_bytes, check_acknowledged)
    .osu("osu_bcast_ack", "OSU MPI Acknowledged Broadcast Latency Test")
);
ombx_core::inventory::submit!(
    Benchmark::custom(
        "collective.bcast_acked",
        "a broadcast that each rank acknowledges in turn, without the acknowledgement's time",
        Metric::Latency,
        EACH_ACK,
        every_algorithm::<EachAck>
    )
    .iterates(ACKNOWLEDGED, "the largest t - round trip / 2 of all ranks")
    .layout(Layout::Star)
    .with(&[AckCorrection::PARAMETER, Algorithm::PARAMETER, MESSAGE_TYPE, Root::PARAMETER])
    .sizes(SIZES)
    .made_of(block_bytes, check_acknowledged)
);
