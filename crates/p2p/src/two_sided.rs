//! Patterns of two ranks: latency, bandwidth, links, persistent and partitioned messages, requests at an offered rate, and ranks that
//! have forked children.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, Pairing, Pairs, Parameter, ParameterValue,
        Role, Work, derived,
        memory::{BufferMemory, Cache, Staged},
        payload::{Datatype, Fill},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    measure::{plan::Plan, session::Session},
    result::Check,
    two_sided::{
        pattern::{
            BiStream, Bidirectional, Buffers, LinkPattern, Pattern, PatternKernel, PingPong, Semidirectional,
            Stream, Unidirectional,
        },
        request::{self, Arrivals, Rate},
        threaded::SharedPing,
    },
};
use ombx_mpi::{
    Channel, ForkedChild, Int, PartitionedChannel, PersistentChannel, RequestChannel, SendMode, SharedChannel,
};

use crate::{PING_PONG, STREAM, in_modes, over, run_cached, run_two_sided};

/// Parameters of messages and their buffers.
const MESSAGES: &[&Parameter] =
    &[Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER];

ombx_core::inventory::submit!(
    in_modes::<PingPong>("p2p.latency", "blocking ping-pong between two ranks, one way")
        .iterates(PING_PONG, "t / 2")
        .sizes("0,1..4M")
        .with(&[SendMode::PARAMETER])
        .with(Channel::<Int>::PARAMETERS)
        .with(MESSAGES)
        .with(&[Staged::PARAMETER])
        .osu("osu_latency", "OSU MPI Latency Test")
);

ombx_core::inventory::submit!(
    Benchmark::threaded::<SharedPing<SharedChannel>>(
        "p2p.latency_mt",
        "blocking ping-pongs of several threads, one way"
    )
    .iterates(PING_PONG, "t / 2, over the samples of all threads")
    .sizes("0,1..4M")
    .with(&[MESSAGE_TYPE, BufferMemory::PARAMETER])
    .made_of(derived::block_bytes, derived::check)
    .osu("osu_latency_mt", "OSU MPI Multi-threaded Latency Test")
);

ombx_core::inventory::submit!(
    in_modes::<Stream>("p2p.bw", "window of nonblocking sends, acknowledged once")
        .iterates(STREAM, "W S / t")
        .streaming()
        .with(&[Buffers::PARAMETER, SendMode::PARAMETER])
        .with(Channel::<Int>::PARAMETERS)
        .with(MESSAGES)
        .with(&[Staged::PARAMETER])
        .osu("osu_bw", "OSU MPI Bandwidth Test")
);

/// Refuses ready sends: neither rank can know that the other has posted its receives.
fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    match case.get() {
        SendMode::Ready => Err("--send ready: sends in both directions at once may precede their receives; \
                                choose --send standard, synchronous or buffered"
            .to_owned()),
        _ => derived::check(case, plan),
    }
}

ombx_core::inventory::submit!(
    in_modes::<BiStream>("p2p.bibw", "windows of nonblocking messages in both directions at once")
        .iterates(&["MPI_Irecv", "MPI_Isend", "MPI_Waitall"], "2 W S / t")
        .streaming()
        .made_of(derived::block_bytes, check)
        .with(&[Buffers::PARAMETER, SendMode::PARAMETER])
        .with(Channel::<Int>::PARAMETERS)
        .with(MESSAGES)
        .with(&[Staged::PARAMETER])
        .osu("osu_bibw", "OSU MPI Bi-Directional Bandwidth Test")
);

ombx_core::inventory::submit!(
    in_modes::<Stream>("p2p.mbw_mr", "bandwidth and message rate of many pairs at the same time")
        .iterates(STREAM, "P W S / t, and P W / t messages a second; t from the first start to the last end")
        .streaming()
        .layout(Layout::Pairs(Pairs::Most))
        .with(&[Buffers::PARAMETER, Pairing::PARAMETER, SendMode::PARAMETER])
        .with(Channel::<Int>::PARAMETERS)
        .with(MESSAGES)
        .with(&[Staged::PARAMETER])
        .osu("osu_mbw_mr", "OSU MPI Multiple Bandwidth / Message Rate Test")
);
ombx_core::inventory::submit!(
    in_modes::<PingPong>("p2p.multi_latency", "blocking ping-pongs of many pairs at the same time, one way")
        .iterates(PING_PONG, "t / 2; t from the first start to the last end")
        .layout(Layout::Pairs(Pairs::Most))
        .with(&[Pairing::PARAMETER, SendMode::PARAMETER])
        .with(Channel::<Int>::PARAMETERS)
        .with(MESSAGES)
        .with(&[Staged::PARAMETER])
        .osu("osu_multi_lat", "OSU MPI Multi Latency Test")
);

const METHOD: Method = Method {
    timed: "for messages of S bytes: semidirectional, a ping-pong, S divided by half the time; \
            bidirectional, two ping-pongs at once, 2 S divided by half the time; unidirectional, a window \
            of W blocking messages and one acknowledgement, W S divided by the time",
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

ombx_core::inventory::submit!(
    Benchmark::custom(
        "p2p.link",
        "one link under LinkTest's patterns",
        Metric::Bandwidth,
        METHOD,
        by_pattern
    )
    .iterates(PING_PONG, "semidirectional: 2 S / t; bidirectional: 4 S / t; unidirectional: W S / t")
    .streaming_only(LinkPattern::PARAMETER, LinkPattern::Unidirectional.name())
    .with(&[LinkPattern::PARAMETER, BufferMemory::PARAMETER, Staged::PARAMETER])
);

/// Returns an entry with a method of its own in place of that of its pattern, which names blocking and nonblocking calls.
const fn by(mut entry: Benchmark, timed: &'static str, like: &'static str) -> Benchmark {
    let untimed = "connections, buffers, filling and checking them, creating the requests";
    entry.described.method = Method { timed, untimed, like };
    entry
}

ombx_core::inventory::submit!(
    by(
        over::<PingPong, PersistentChannel>(
            "p2p.latency_persistent",
            "ping-pong over persistent requests, one way"
        ),
        "starting a persistent send and waiting for it, then a persistent receive and waiting for it, on rank \
         0; the same for a receive and a send on rank 1; the figure is half the time",
        "osu_latency_persistent"
    )
    .iterates(&["MPI_Start", "MPI_Wait"], "t / 2")
    .sizes("0,1..4M")
    .with(PersistentChannel::PARAMETERS)
    .with(MESSAGES)
    .osu("osu_latency_persistent", "OSU MPI Latency Persistent Test")
);
ombx_core::inventory::submit!(
    by(
        over::<Stream, PersistentChannel>(
            "p2p.bw_persistent",
            "window of persistent sends, acknowledged once"
        ),
        "on rank 0, starting a window of persistent sends, waiting for all, and a persistent receive of the \
         acknowledgement; rank 1 starts a window of persistent receives, waits, and acknowledges by a \
         persistent send",
        "osu_bw_persistent, whose messages share a single buffer"
    )
    .iterates(&["MPI_Startall", "MPI_Waitall", "MPI_Start", "MPI_Wait"], "W S / t")
    .streaming()
    .with(&[Buffers::PARAMETER])
    .with(PersistentChannel::PARAMETERS)
    .with(MESSAGES)
    .osu("osu_bw_persistent", "OSU MPI Bandwidth Persistent Test")
);
ombx_core::inventory::submit!(
    by(
        over::<BiStream, PersistentChannel>(
            "p2p.bibw_persistent",
            "windows of persistent messages in both directions at once"
        ),
        "on both ranks, starting a window of persistent receives, starting a window of persistent sends, and \
         waiting for all of them",
        "osu_bibw_persistent, whose messages share a single buffer"
    )
    .iterates(&["MPI_Startall", "MPI_Waitall"], "2 W S / t")
    .streaming()
    .with(&[Buffers::PARAMETER])
    .with(PersistentChannel::PARAMETERS)
    .with(MESSAGES)
    .osu("osu_bibw_persistent", "OSU MPI Bi-Directional Bandwidth Persistent Test")
);

/// Returns the entry of a pattern over partitioned messages.
#[track_caller]
const fn partitioned<P: Pattern>(
    name: &'static str,
    about: &'static str,
    formula: &'static str,
    timed: &'static str,
) -> Benchmark {
    let run = run_cached::<PatternKernel<P, PartitionedChannel>>;
    by(
        Benchmark::custom(name, about, P::METRIC, P::METHOD, run),
        timed,
        "none in IMB; OMB 7.5 has a latency test",
    )
    .iterates(&["MPI_Start", "MPI_Pready", "MPI_Wait"], formula)
    .with(&[Cache::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
    .made_of(derived::block_bytes, derived::check)
    .available(PartitionedChannel::available)
}

ombx_core::inventory::submit!(partitioned::<PingPong>(
    "p2p.latency_partitioned",
    "ping-pong of messages of one partition, one way",
    "t / 2",
    "on rank 0, starting a partitioned send, marking its partition ready and waiting for it, then starting a \
     partitioned receive and waiting for it; on rank 1 a receive and a send; the figure is half the time"
));
ombx_core::inventory::submit!(
    partitioned::<Stream>(
        "p2p.bw_partitioned",
        "one message with a window of partitions, each marked ready separately, acknowledged once",
        "W S / t",
        "on rank 0, starting a partitioned send, marking each partition ready, waiting for the send, and a \
         persistent receive of the acknowledgement; rank 1 starts a partitioned receive, waits, and \
         acknowledges by a persistent send"
    )
    .streaming()
);

/// Calls for one request on both ranks.
const CALLS: &[&str] = &["MPI_Irecv", "MPI_Isend", "MPI_Testall", "MPI_Recv", "MPI_Send"];

ombx_core::inventory::submit!(
    Benchmark::custom(
        "p2p.request",
        "requests at an offered rate, latency from the scheduled time to the reply",
        Metric::Latency,
        request::method("none in OMB and IMB"),
        request::run_requests::<RequestChannel>,
    )
    .iterates(CALLS, request::FORMULA)
    .sizes("64")
    .streaming()
    .with(&[Rate::PARAMETER, Arrivals::PARAMETER, BufferMemory::PARAMETER])
);

type Ping = PatternKernel<PingPong, Channel>;

/// A ping-pong on a rank with a sleeping child process, which shares the rank's pages and never calls MPI.
struct Forked {
    ping: Ping,
    child: ForkedChild,
}

impl Kernel for Forked {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "one blocking send and one blocking receive on rank 0, a receive and a send on rank 1; each \
                rank has forked a child that sleeps; the figure is half the time",
        untimed: "a first message, so that the library has registered the buffers; forking and ending the \
                  children; buffers, filling and checking them",
        like: "osu_latency_mp, whose children end after two seconds",
    };

    fn work(case: &Case) -> Work {
        Ping::work(case)
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let mut ping = Ping::open(cx, case)?;
        match cx.role {
            Role::Active => ping.active()?,
            Role::Passive => ping.passive()?,
        }
        Ok(Forked { ping, child: cx.agree(ForkedChild::fork())? })
    }

    ombx_core::forwards!(ping: active, passive -> Result<()>);
    ombx_core::forwards!(ping: fill(fill: Fill) -> Result<()>);
    ombx_core::forwards!(ping: check(fill: Fill) -> Result<Check>);

    fn close(self) -> Result<()> {
        self.child.end()?;
        self.ping.close()
    }
}

ombx_core::inventory::submit!(
    Benchmark::new::<Forked>(
        "p2p.latency_mp",
        "blocking ping-pong between ranks that forked children, one way"
    )
    .iterates(PING_PONG, "t / 2")
    .sizes("0,1..4M")
    .with(&[MESSAGE_TYPE])
    .made_of(derived::block_bytes, derived::check)
    .osu("osu_latency_mp", "OSU MPI Multi-process Latency Test")
);
