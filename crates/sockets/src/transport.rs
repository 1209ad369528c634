//! Benchmarks of two ranks over each kind of socket: core's patterns over links of this crate.

use ombx_core::{
    benchmark::{
        axis::{Axis, Named},
        entry::Benchmark,
        kernel::Kernel,
        setting::Setting,
        work::{Method, Metric},
    },
    error::{Error, Result},
    measure::{engine::run, session::Session},
    two_sided::pattern::{
        BUFFERS, BiStream, Bidirectional, Over, PATTERNS, Pattern, PingPong, Semidirectional, Stream,
        Unidirectional,
    },
    unit::Bytes,
};

use crate::{
    link::{Tcp, Unix, ZeroCopyTcp, datagrams::Datagrams, flow::Flow},
    options::Options,
    team::{Ip, SocketTeam},
};

const TRANSPORT: Axis = Axis {
    name: "transport",
    about: "the kind of socket: TCP, a Unix-domain stream inside a host, or UDP whose losses are sent again and counted",
    values: &["tcp", "unix", "udp"],
    default: "tcp",
    named: Named::Always,
};

const IP: Axis = Axis {
    name: "ip",
    about: "the version of the internet protocol under TCP and UDP",
    values: &["4", "6"],
    default: "4",
    named: Named::Always,
};

const NODELAY: Axis = Axis {
    name: "nodelay",
    about: "whether TCP sends small messages at once (TCP_NODELAY)",
    values: &["on", "off"],
    default: "on",
    named: Named::Always,
};

const ZERO_COPY: Axis = Axis {
    name: "zero-copy",
    about: "whether the kernel takes what TCP sends from where it is (MSG_ZEROCOPY); a send then ends once it is done with it",
    values: &["off", "on"],
    default: "off",
    named: Named::IfChosen,
};

const SOCKET_BUFFER: Setting = Setting {
    name: "socket-buffer",
    value: "BYTES",
    about: "Send and receive buffers of sockets, for example: --socket-buffer 4M [default: the kernel's]",
    default: None,
    check: |text| buffer(text).map(|_| ()),
};

const CONGESTION: Setting = Setting {
    name: "congestion",
    value: "NAME",
    about: "TCP's congestion control, for example: --congestion reno [default: the kernel's]",
    default: None,
    check: |text| match !text.is_empty()
        && text.len() < 16
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    {
        true => Ok(()),
        false => {
            Err(Error::usage(format!("{text:?} is not the name of a congestion control, such as cubic")))
        }
    },
};

fn buffer(text: &str) -> Result<usize> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        // The kernel takes an int and doubles it.
        4096..=0x3fff_ffff => Ok(bytes as usize),
        _ => Err(Error::usage(format!("a socket buffer has from 4K to 1G bytes less one, not {text}"))),
    }
}

/// Runs a pattern over every transport that was chosen.
fn by_transport<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    session.split(&TRANSPORT, |session, transport| match transport {
        "unix" => session.without(&[&IP, &NODELAY, &ZERO_COPY], |session| {
            set(session, Ip::V4, true)?;
            run::<Over<P, Flow<Unix>>>(session)
        }),
        "udp" => by_ip(session, |session, ip| {
            session.without(&[&NODELAY, &ZERO_COPY], |session| {
                set(session, ip, true)?;
                run::<Over<P, Datagrams>>(session)
            })
        }),
        "tcp" => by_ip(session, |session, ip| {
            session.split(&NODELAY, |session, nodelay| {
                set(session, ip, nodelay == "on")?;
                session.split(&ZERO_COPY, |session, zero_copy| match zero_copy {
                    "on" => run::<Over<P, Flow<ZeroCopyTcp>>>(session),
                    _ => run::<Over<P, Flow<Tcp>>>(session),
                })
            })
        }),
        other => Err(Error::usage(format!("no benchmark runs over {other}"))),
    })
}

fn by_ip<'a>(
    session: &mut Session<'a>,
    mut each: impl FnMut(&mut Session<'a>, Ip) -> Result<()>,
) -> Result<()> {
    session.split(&IP, |session, ip| each(session, if ip == "6" { Ip::V6 } else { Ip::V4 }))
}

/// Tells the team how connections are to be made from now on.
fn set(session: &Session<'_>, ip: Ip, nodelay: bool) -> Result<()> {
    let team: &dyn std::any::Any = session.team;
    let team: &SocketTeam = team
        .downcast_ref()
        .ok_or_else(|| Error::unsupported("needs ranks that are connected by sockets, without MPI"))?;
    let plan = session.plan;
    let options = Options {
        nodelay,
        buffer: plan.setting(&SOCKET_BUFFER).map(buffer).transpose()?,
        congestion: plan.setting(&CONGESTION).map(str::to_owned),
    };
    team.wish(|wishes| (wishes.ip, wishes.options) = (ip, options));
    Ok(())
}

fn by_pattern(session: &mut Session<'_>) -> Result<()> {
    session.split(&PATTERNS, |session, value| match value {
        "bidirectional" => by_transport::<Bidirectional>(session),
        "unidirectional" => by_transport::<Unidirectional>(session),
        "semidirectional" => by_transport::<Semidirectional>(session),
        other => Err(Error::usage(format!("no benchmark runs {other} links"))),
    })
}

/// What is timed where messages go through a socket, and what is not.
const fn method(timed: &'static str, like: &'static str) -> Method {
    let untimed = "connecting and authenticating, socket options, buffers, filling and checking them";
    Method { timed, untimed, like }
}

#[track_caller]
const fn entry(
    name: &'static str,
    about: &'static str,
    metric: Metric,
    method: Method,
    run: fn(&mut Session<'_>) -> Result<()>,
) -> Benchmark {
    Benchmark::custom(name, about, metric, method, run)
        .over_sockets()
        .settings(&[&SOCKET_BUFFER, &CONGESTION])
}

ombx_core::inventory::submit! {
    entry(
        "sockets.latency",
        "blocking ping-pong between two processes over sockets, one way",
        <Over<PingPong, Flow<Tcp>> as Kernel>::METRIC,
        method(
            "one send and one recv of the whole message on rank 0, a recv and a send on rank 1; the figure is half of it; over \
             udp each message has 8 bytes of its own before it, and one that is lost is sent again",
            "sockperf ping-pong; NetPIPE over TCP",
        ),
        by_transport::<PingPong>,
    ).axes(&[&TRANSPORT, &IP, &NODELAY, &ZERO_COPY])
}
ombx_core::inventory::submit! {
    entry(
        "sockets.bw",
        "window of messages over sockets, acknowledged once",
        Metric::Bandwidth,
        method(
            "a window of blocking sends on rank 0 and the receipt of rank 1, one byte or datagram, which it sends once it has \
             received all, each by one recv",
            "iperf3, whose messages share a single buffer and which never waits for a receipt",
        ),
        by_transport::<Stream>,
    ).streaming().axes(&[&TRANSPORT, &IP, &NODELAY, &ZERO_COPY, &BUFFERS])
}
ombx_core::inventory::submit! {
    entry(
        "sockets.bibw",
        "windows of messages over sockets both ways at once",
        Metric::Bandwidth,
        method(
            "on both ranks a window of sends and a window of recvs on one socket; a send that finds no room gives way to \
             recvs of what is there, and poll waits only where neither can go on",
            "iperf3 --bidir, which has a connection for each direction",
        ),
        by_transport::<BiStream>,
    ).streaming().axes(&[&TRANSPORT, &IP, &NODELAY, &ZERO_COPY, &BUFFERS])
}
ombx_core::inventory::submit! {
    entry(
        "sockets.link",
        "one link over sockets under LinkTest's patterns",
        Metric::Bandwidth,
        method(
            "semidirectional: a ping-pong, S by half its time; bidirectional: two ping-pongs at once, 2 S by half their time; \
             unidirectional: a window of blocking messages and one receipt, S by its part of that time",
            "LinkTest's three patterns over its TCP layer",
        ),
        by_pattern,
    ).streaming().axes(&[&PATTERNS, &TRANSPORT, &IP, &NODELAY, &ZERO_COPY])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_before_anything_starts() {
        assert_eq!(buffer("4M").unwrap(), 4 << 20);
        for text in ["", "x", "0", "1", "2G", "-1"] {
            assert!((SOCKET_BUFFER.check)(text).is_err(), "{text}");
        }
        assert!((CONGESTION.check)("cubic").is_ok());
        for text in ["", "a b", "../x", "much_too_long_name"] {
            assert!((CONGESTION.check)(text).is_err(), "{text}");
        }
    }
}
