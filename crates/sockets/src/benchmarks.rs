//! Benchmarks of two ranks over sockets: core's patterns over every kind of socket.

use ombx_core::{
    benchmark::{Benchmark, Direction, Kernel, Method, Metric, Parameter, ParameterValue},
    error::Result,
    measure::session::Session,
    two_sided::{
        datagrams,
        pattern::{
            BiStream, Bidirectional, Buffers, LinkPattern, PatternKernel, PingPong, Semidirectional, Stream,
            Unidirectional,
        },
        request::{self, Arrivals, Rate},
    },
};

use crate::{
    link::{self, Connections, Streams, Tcp, stream::StreamLink},
    options::{CONGESTION, DSCP, LOW_WATER, NoDelay, Offload, SOCKET_BUFFER, ZeroCopy},
    socket::IpVersion,
    transport::{Transport, by_transport, connections_over_tcp, paced_datagrams, requests_over_tcp},
};

fn by_pattern(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pattern| match pattern {
        LinkPattern::Bidirectional => by_transport::<Bidirectional>(session),
        LinkPattern::Unidirectional => by_transport::<Unidirectional>(session),
        LinkPattern::Semidirectional => by_transport::<Semidirectional>(session),
    })
}

/// Returns the description of what is timed.
const fn method(timed: &'static str, like: &'static str) -> Method {
    let untimed = "connecting and authenticating, options of new sockets, buffers, filling and checking them";
    Method { timed, untimed, like }
}

/// Calls of the operating system for one message.
const CALLS: &[&str] = &["send", "recv"];

/// Options of stream sockets.
const SOCKET_OPTIONS: &[&Parameter] = &[&SOCKET_BUFFER, &CONGESTION, &DSCP];

#[track_caller]
const fn entry(
    name: &'static str,
    about: &'static str,
    metric: Metric,
    method: Method,
    run: fn(&mut Session<'_>) -> Result<()>,
) -> Benchmark {
    Benchmark::custom(name, about, metric, method, run).over_sockets().with(SOCKET_OPTIONS)
}

ombx_core::inventory::submit!(
    entry(
        "sockets.latency",
        "blocking ping-pong between two processes over sockets, one way",
        <PatternKernel<PingPong, StreamLink<Tcp>> as Kernel>::METRIC,
        method(
            "a send of the message and recv until the reply is complete on rank 0, the reverse on rank 1; \
             the figure is half of it; a message over udp has a header of 8 bytes, and a lost one is sent \
             again",
            "sockperf ping-pong; NetPIPE over TCP",
        ),
        by_transport::<PingPong>,
    )
    .iterates(CALLS, "t / 2")
    .with(&[Transport::PARAMETER, IpVersion::PARAMETER, NoDelay::PARAMETER, ZeroCopy::PARAMETER])
);
ombx_core::inventory::submit!(
    entry(
        "sockets.bw",
        "window of messages over sockets, acknowledged once",
        Metric::Bandwidth,
        method(
            "a window of blocking sends on rank 0, recv until each message is complete on rank 1, where \
             with BBR 128 KiB wake a receiver that waits (SO_RCVLOWAT), and one acknowledgement of one \
             byte or datagram after the last; with --streams each stream has its share of the window, its \
             acknowledgement and a thread on both ranks, and a sample is from the first start of a thread \
             to the last end",
            "iperf3 and iperf3 -P, whose messages share a single buffer, whose receiver is woken by any \
             byte, and which wait for no acknowledgement",
        ),
        by_transport::<Stream>,
    )
    .iterates(&["send", "recv", "setsockopt"], "W S / t")
    .streaming()
    .with(&[Streams::PARAMETER])
    .made_of(|_, _| 1, link::check)
    .with(&[
        Transport::PARAMETER,
        IpVersion::PARAMETER,
        NoDelay::PARAMETER,
        ZeroCopy::PARAMETER,
        Offload::PARAMETER,
        Buffers::PARAMETER,
        Direction::PARAMETER
    ])
    .with(&[&LOW_WATER])
);
ombx_core::inventory::submit!(
    entry(
        "sockets.bibw",
        "windows of messages over sockets both ways at once",
        Metric::Bandwidth,
        method(
            "on both ranks a window of sends and a window of recvs on one socket; when a send would block, \
             the rank receives; poll waits only when neither can proceed; with --streams N, N connections \
             each way, each with a thread on both ranks, as in sockets.bw",
            "iperf3 --bidir -P N, which waits for no acknowledgement",
        ),
        by_transport::<BiStream>,
    )
    .iterates(&["send", "recv", "poll", "setsockopt"], "2 W S / t")
    .streaming()
    .with(&[Streams::PARAMETER])
    .made_of(|_, _| 1, link::check)
    .with(&[
        Transport::PARAMETER,
        IpVersion::PARAMETER,
        NoDelay::PARAMETER,
        ZeroCopy::PARAMETER,
        Offload::PARAMETER,
        Buffers::PARAMETER
    ])
    .with(&[&LOW_WATER])
);
ombx_core::inventory::submit!(
    entry(
        "sockets.link",
        "one link over sockets under LinkTest's patterns",
        Metric::Bandwidth,
        method(
            "semidirectional: a ping-pong, S over half its time; bidirectional: two ping-pongs at once, 2 \
             S over half their time; unidirectional: a window of blocking messages and one \
             acknowledgement, S over the time per message",
            "LinkTest's three patterns over its TCP layer",
        ),
        by_pattern,
    )
    .iterates(CALLS, "semidirectional: 2 S / t; bidirectional: 4 S / t; unidirectional: W S / t")
    .streaming_only(LinkPattern::PARAMETER, LinkPattern::Unidirectional.name())
    .with(&[
        LinkPattern::PARAMETER,
        Transport::PARAMETER,
        IpVersion::PARAMETER,
        NoDelay::PARAMETER,
        ZeroCopy::PARAMETER,
        Offload::PARAMETER
    ])
);
ombx_core::inventory::submit!(
    Benchmark::custom(
        "sockets.connect",
        "opens a TCP connection, exchanges a message each way and closes it, one after the other",
        Connections::METRIC,
        Connections::METHOD,
        connections_over_tcp,
    )
    .over_sockets()
    .iterates(&["socket", "setsockopt", "connect", "send", "recv", "close"], "t")
    .sizes("1")
    .with(&[IpVersion::PARAMETER, Direction::PARAMETER])
);
ombx_core::inventory::submit!(
    Benchmark::custom(
        "sockets.datagrams",
        "UDP at an offered rate: what arrives, with loss, reordering, duplicates and jitter",
        Metric::Bandwidth,
        datagrams::method(
            "iperf3 -u -b, whose messages include the header; netperf UDP_STREAM, which is not paced"
        ),
        paced_datagrams,
    )
    .over_sockets()
    .iterates(&["sendmsg", "recvmsg"], datagrams::FORMULA)
    .sizes("64,1400")
    .with(&[IpVersion::PARAMETER, Offload::PARAMETER, Arrivals::PARAMETER, Direction::PARAMETER])
    .with(&[Rate::PARAMETER, &SOCKET_BUFFER, &DSCP])
);
ombx_core::inventory::submit!(
    Benchmark::custom(
        "sockets.request",
        "requests over TCP at an offered rate, latency from the scheduled time to the reply",
        Metric::Latency,
        request::method("sockperf under-load, which counts from the time of sending; wrk2 over HTTP"),
        requests_over_tcp,
    )
    .over_sockets()
    .iterates(CALLS, request::FORMULA)
    .sizes("64")
    .streaming()
    .with(&[IpVersion::PARAMETER, NoDelay::PARAMETER, Arrivals::PARAMETER, Direction::PARAMETER])
    .with(&[Rate::PARAMETER])
    .with(SOCKET_OPTIONS)
);
