//! Benchmarks of two ranks over each kind of socket: core's patterns over links of this crate.

use ombx_core::{
    benchmark::{AxisValue, Benchmark, Kernel, Method, Metric, Setting},
    error::{Error, Result},
    measure::{engine::run, session::Session},
    two_sided::pattern::{
        BiStream, Bidirectional, Buffers, LinkPattern, Pattern, PatternKernel, PingPong, Semidirectional,
        Stream, Unidirectional,
    },
    unit::Bytes,
};

use crate::{
    link::{
        connect::{Tcp, Unix, ZeroCopyTcp},
        datagrams::Datagrams,
        stream::StreamLink,
    },
    session::SocketTeam,
    socket::{Ip, LinkOptions, SocketOptions},
};

ombx_core::axis! {
    /// Kind of socket
    enum Transport: "transport", Always, default Tcp {
        /// TCP
        Tcp = "tcp",
        /// Unix-domain stream inside a host
        Unix = "unix",
        /// UDP; lost datagrams are sent again and counted
        Udp = "udp",
    }
}

ombx_core::axis! {
    /// Version of the internet protocol under TCP and UDP
    enum IpVersion: "ip", Always, default V4 {
        /// IPv4
        V4 = "4",
        /// IPv6
        V6 = "6",
    }
}

ombx_core::axis! {
    /// TCP_NODELAY: send small messages at once
    enum NoDelay: "nodelay", Always, default On {
        /// Small messages are sent at once
        On = "on",
        /// Small messages may wait to be joined
        Off = "off",
    }
}

ombx_core::axis! {
    /// MSG_ZEROCOPY: the kernel sends from the buffers of ombx; a send ends when the kernel is done with its buffer
    enum ZeroCopy: "zero-copy", IfChosen, default Off {
        /// The kernel copies
        Off = "off",
        /// The kernel does not copy
        On = "on",
    }
}

const SOCKET_BUFFER: Setting = Setting {
    name: "socket-buffer",
    value: "BYTES",
    about: "Size of the send and receive buffers of sockets, for example: --socket-buffer 4M [default: the kernel's]",
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
            Err(Error::usage(format!("{text:?} is no name of a congestion control; give one such as cubic")))
        }
    },
};

fn buffer(text: &str) -> Result<usize> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        // The kernel's option is an int, which it doubles.
        4096..=0x3fff_ffff => Ok(bytes as usize),
        _ => Err(Error::usage(format!("a socket buffer has at least 4K and less than 1G bytes, not {text}"))),
    }
}

/// Runs a pattern over every transport that was chosen.
fn by_transport<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, transport| match transport {
        Transport::Unix => session.without(&[IpVersion::AXIS, NoDelay::AXIS, ZeroCopy::AXIS], |session| {
            set_options(session, Ip::V4, true)?;
            run::<PatternKernel<P, StreamLink<Unix>>>(session)
        }),
        Transport::Udp => by_ip(session, |session, ip| {
            session.without(&[NoDelay::AXIS, ZeroCopy::AXIS], |session| {
                set_options(session, ip, true)?;
                run::<PatternKernel<P, Datagrams>>(session)
            })
        }),
        Transport::Tcp => by_ip(session, |session, ip| {
            session.split(|session, nodelay: NoDelay| {
                set_options(session, ip, nodelay == NoDelay::On)?;
                session.split(|session, zero_copy| match zero_copy {
                    ZeroCopy::On => run::<PatternKernel<P, StreamLink<ZeroCopyTcp>>>(session),
                    ZeroCopy::Off => run::<PatternKernel<P, StreamLink<Tcp>>>(session),
                })
            })
        }),
    })
}

fn by_ip<'a>(
    session: &mut Session<'a>,
    mut each: impl FnMut(&mut Session<'a>, Ip) -> Result<()>,
) -> Result<()> {
    session.split(|session, ip| {
        each(
            session,
            match ip {
                IpVersion::V4 => Ip::V4,
                IpVersion::V6 => Ip::V6,
            },
        )
    })
}

/// Sets how the team makes its next connections.
fn set_options(session: &Session<'_>, ip: Ip, nodelay: bool) -> Result<()> {
    let team: &dyn std::any::Any = session.team;
    let team: &SocketTeam = team
        .downcast_ref()
        .ok_or_else(|| Error::unsupported("needs ranks that are connected by sockets; run it without MPI"))?;
    let plan = session.plan;
    let socket = SocketOptions {
        nodelay,
        buffer: plan.setting(&SOCKET_BUFFER).map(buffer).transpose()?,
        congestion: plan.setting(&CONGESTION).map(str::to_owned),
    };
    team.set_link_options(LinkOptions { ip, socket });
    Ok(())
}

fn by_pattern(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, pattern| match pattern {
        LinkPattern::Bidirectional => by_transport::<Bidirectional>(session),
        LinkPattern::Unidirectional => by_transport::<Unidirectional>(session),
        LinkPattern::Semidirectional => by_transport::<Semidirectional>(session),
    })
}

/// Returns the description of what is timed.
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
        <PatternKernel<PingPong, StreamLink<Tcp>> as Kernel>::METRIC,
        method(
            "one send and one recv of the whole message on rank 0, a recv and a send on rank 1; the figure is half of it; a message \
             over udp has a header of 8 bytes, and a lost one is sent again",
            "sockperf ping-pong; NetPIPE over TCP",
        ),
        by_transport::<PingPong>,
    ).axes(&[Transport::AXIS, IpVersion::AXIS, NoDelay::AXIS, ZeroCopy::AXIS])
}
ombx_core::inventory::submit! {
    entry(
        "sockets.bw",
        "window of messages over sockets, acknowledged once",
        Metric::Bandwidth,
        method(
            "a window of blocking sends on rank 0, one recv for each message on rank 1, and one acknowledgement of one byte or \
             datagram after the last",
            "iperf3, whose messages share a single buffer and which waits for no acknowledgement",
        ),
        by_transport::<Stream>,
    ).streaming().axes(&[Transport::AXIS, IpVersion::AXIS, NoDelay::AXIS, ZeroCopy::AXIS, Buffers::AXIS])
}
ombx_core::inventory::submit! {
    entry(
        "sockets.bibw",
        "windows of messages over sockets both ways at once",
        Metric::Bandwidth,
        method(
            "on both ranks a window of sends and a window of recvs on one socket; when a send would block, the rank receives; \
             poll waits only when neither can proceed",
            "iperf3 --bidir, which has a connection for each direction",
        ),
        by_transport::<BiStream>,
    ).streaming().axes(&[Transport::AXIS, IpVersion::AXIS, NoDelay::AXIS, ZeroCopy::AXIS, Buffers::AXIS])
}
ombx_core::inventory::submit! {
    entry(
        "sockets.link",
        "one link over sockets under LinkTest's patterns",
        Metric::Bandwidth,
        method(
            "semidirectional: a ping-pong, S over half its time; bidirectional: two ping-pongs at once, 2 S over half their time; \
             unidirectional: a window of blocking messages and one acknowledgement, S over the time per message",
            "LinkTest's three patterns over its TCP layer",
        ),
        by_pattern,
    ).streaming().axes(&[LinkPattern::AXIS, Transport::AXIS, IpVersion::AXIS, NoDelay::AXIS, ZeroCopy::AXIS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
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
