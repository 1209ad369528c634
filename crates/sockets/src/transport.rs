//! Kinds of sockets: their values of `--transport`, their protocols, and the options that each has.

use ombx_core::{
    benchmark::{Case, Context, Depth, Kernel, Method, Metric, Parameter, ParameterValue, Role, Work},
    error::{Error, Result},
    measure::{engine::run, open_kernel::Loops, plan::Plan, row::KernelKind, session::Session},
    pacing::{
        mesh::Waiting,
        paced_threads::{ThreadGroup, run_grouped},
    },
    two_sided::{
        datagrams::run_datagrams,
        pattern::{Link, Pattern, PatternKernel, Stream},
        request::run_requests,
    },
    unit::{Bytes, digits},
};

use rustix::net::{Protocol, ipproto};

use crate::{
    link::{
        Connections, SocketKind, Streams as StreamCount, datagrams::Datagrams, paced::PacedDatagrams,
        request::RequestStream, stream::StreamLink,
    },
    session::SocketTeam,
    socket::{IpVersion, LinkOptions, MPTCP, SocketOptions},
};

ombx_core::parameter! {
    /// Kind of socket
    pub(crate) enum Transport: "transport", Always, default Tcp {
        /// TCP
        Tcp = "tcp",
        /// Multipath TCP (RFC 8684), whose subflows the kernel's path manager opens
        Mptcp = "mptcp",
        /// Unix-domain stream inside a host
        Unix = "unix",
        /// UDP; lost datagrams are sent again and counted
        Udp = "udp",
    }
}

ombx_core::parameter! {
    /// TCP_NODELAY: send small messages at once
    pub(crate) enum NoDelay: "nodelay", Always, default On {
        /// Small messages are sent at once
        On = "on",
        /// Small messages may wait to be joined
        Off = "off",
    }
}

ombx_core::parameter! {
    /// MSG_ZEROCOPY: the kernel sends from the buffers of ombx; a send ends when the kernel is done with its buffer
    pub(crate) enum ZeroCopy: "zero-copy", IfChosen, default Off {
        /// The kernel copies
        Off = "off",
        /// The kernel does not copy
        On = "on",
    }
}

ombx_core::parameter! {
    /// GSO and GRO of UDP: one call sends and receives several datagrams
    pub(crate) enum Offload: "offload", IfChosen, default On {
        /// Where kernel, route and message size allow it
        On = "on",
        /// A call sends or receives one datagram
        Off = "off",
    }
}

pub(crate) static SOCKET_BUFFER: Parameter = Parameter::free(
    "socket-buffer",
    "BYTES",
    "Size of the send and receive buffers of sockets, for example: --socket-buffer 4M [default: the kernel's]",
    |text| buffer(text).map(|_| ()),
);

pub(crate) static CONGESTION: Parameter = Parameter::free(
    "congestion",
    "NAME",
    "Congestion control of TCP and MPTCP, for example: --congestion reno [default: the kernel's]",
    |text| {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..16).contains(&text.len()) && text.bytes().all(is_of_name) {
            Ok(())
        } else {
            Err(Error::usage(format!("{text:?} is no name of a congestion control; give one such as cubic")))
        }
    },
);

pub(crate) static DSCP: Parameter = Parameter::free(
    "dscp",
    "CLASS",
    "Class of the packets in their IP headers (RFC 2474), a name or a number below 64, for example: --dscp \
     EF or --dscp 46 [default: the kernel's]",
    |text| class(text).map(|_| ()),
);

pub(crate) static LOW_WATER: Parameter = Parameter::free(
    "rcvlowat",
    "BYTES",
    "SO_RCVLOWAT: bytes that wake a receiver of TCP inside a window, for example: --rcvlowat 1, which is \
     the kernel's [default: 128K if both ends have BBR, else the kernel's]",
    |text| low_water_bytes(text).map(|_| ()),
);

fn low_water_bytes(text: &str) -> Result<u32> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        1..=0x3fff_ffff => Ok(bytes as u32),
        _ => Err(Error::usage(format!("a low-water mark has at least 1 and less than 1G bytes, not {text}"))),
    }
}

/// Returns the number of a class: `EF`, `VA` or `VOICE-ADMIT`, `LE`, `DF` or `BE`, `CS0` to `CS7`, `AF11` to `AF43`, or the number itself.
fn class(text: &str) -> Result<u8> {
    let digit =
        |text: &str, most: u8| text.parse().ok().filter(|digit: &u8| text.len() == 1 && *digit <= most);
    let assured = |text: &str| {
        let (class, drop) = text.split_at_checked(1)?;
        let (class, drop) = (digit(class, 4)?, digit(drop, 3)?);
        (class > 0 && drop > 0).then_some(8 * class + 2 * drop)
    };
    let name = text.to_ascii_uppercase();
    let number = match name.as_str() {
        "EF" => Some(46),
        "VA" | "VOICE-ADMIT" => Some(44),
        "LE" => Some(1),
        "DF" | "BE" => Some(0),
        name => match (name.strip_prefix("CS"), name.strip_prefix("AF")) {
            (Some(class), _) => digit(class, 7).map(|class| 8 * class),
            (_, Some(rest)) => assured(rest),
            _ => digits(name).filter(|number| *number < 64),
        },
    };
    number.ok_or_else(|| {
        Error::usage(format!(
            "{text:?} is no DSCP: give a number from 0 to 63 or a name such as EF, CS1 or AF41"
        ))
    })
}

/// Returns the options that the user has set.
pub(crate) fn socket_options(plan: &Plan) -> Result<SocketOptions> {
    Ok(SocketOptions {
        dscp: plan.text(&DSCP).map(class).transpose()?,
        buffer: plan.text(&SOCKET_BUFFER).map(buffer).transpose()?,
        congestion: plan.text(&CONGESTION).map(str::to_owned),
        ..SocketOptions::default()
    })
}

fn buffer(text: &str) -> Result<usize> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        // The kernel's option is an int, which it doubles.
        4096..=0x3fff_ffff => Ok(bytes as usize),
        _ => Err(Error::usage(format!("a socket buffer has at least 4K and less than 1G bytes, not {text}"))),
    }
}

/// TCP.
pub(crate) enum Tcp {}

impl SocketKind for Tcp {}

/// TCP with sends that avoid a copy.
pub(crate) enum ZeroCopyTcp {}

impl SocketKind for ZeroCopyTcp {
    const ZERO_COPY: bool = true;
}

/// Unix-domain stream sockets.
pub(crate) enum Unix {}

impl SocketKind for Unix {
    const UNIX: bool = true;
}

/// Runs a pattern over every transport and with every number of streams that was chosen.
pub(crate) fn by_transport<P: Pattern>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, transport| match transport {
        Transport::Unix => {
            let of_others =
                [IpVersion::PARAMETER, NoDelay::PARAMETER, ZeroCopy::PARAMETER, Offload::PARAMETER];
            session.without(&of_others, |session| {
                set_options(session, IpVersion::V4, ipproto::TCP, NoDelay::On)?;
                each_count(session, over_streams::<P, StreamLink<Unix>>)
            })
        }
        Transport::Udp => session.split(|session, ip| {
            session.without(&[NoDelay::PARAMETER, ZeroCopy::PARAMETER], |session| {
                by_offload(session, ip, |session| each_count(session, run::<PatternKernel<P, Datagrams>>))
            })
        }),
        Transport::Mptcp => session.split(|session, ip| {
            session.without(&[ZeroCopy::PARAMETER, Offload::PARAMETER], |session| {
                session.split(|session, nodelay: NoDelay| {
                    set_options(session, ip, MPTCP, nodelay)?;
                    each_count(session, over_streams::<P, StreamLink<Tcp>>)
                })
            })
        }),
        Transport::Tcp => session.split(|session, ip| {
            session.without(&[Offload::PARAMETER], |session| {
                session.split(|session, nodelay: NoDelay| {
                    set_options(session, ip, ipproto::TCP, nodelay)?;
                    session.split(|session, zero_copy| match zero_copy {
                        ZeroCopy::On => each_count(session, over_streams::<P, StreamLink<ZeroCopyTcp>>),
                        ZeroCopy::Off => each_count(session, over_streams::<P, StreamLink<Tcp>>),
                    })
                })
            })
        }),
    })
}

/// Calls `run` with every number of streams.
fn each_count<'a>(session: &mut Session<'a>, run: impl Fn(&mut Session<'a>) -> Result<()>) -> Result<()> {
    session.split(|session, StreamCount(streams)| {
        let team = team(session)?;
        team.set_link_options(LinkOptions { streams, ..team.link_options() });
        run(session)
    })
}

/// Runs a pattern over as many links as the team has streams. If there are several, each has a thread on both ranks, or one for each
/// direction that carries data, with a link of its own; and the messages of a window are divided over the streams.
pub(crate) fn over_streams<P: Pattern, L: Link + Send>(session: &mut Session<'_>) -> Result<()> {
    let team = team(session)?;
    let streams = team.link_options().streams;
    if streams == 1 {
        return run::<PatternKernel<P, L>>(session);
    }
    let iterations_per_check = |case: &Case| {
        // Each stream has a buffer if the messages of a window share one.
        let StreamCount(streams) = case.get();
        PatternKernel::<P, L>::iterations_per_check(case).div_ceil(streams.into())
    };
    let kind = KernelKind { iterations_per_check, ..const { KernelKind::new::<PatternKernel<P, L>>() } };
    let threads = streams * directions::<P>();
    let cpus = team.cpus_of_threads(threads);
    let serves = if P::BOTH_WAYS { "connection" } else { "stream" };
    let group = ThreadGroup { threads, cpus, waiting: Waiting::Asleep, serves: Some(serves) };
    run_grouped(session, kind, &group, open_stream::<P, L>)
}

/// Returns the number of directions in which a pattern sends windows.
const fn directions<P: Pattern>() -> u32 {
    if P::BOTH_WAYS { 2 } else { 1 }
}

/// Opens one direction of a stream with its share of a window: the first ones have a message more if the window cannot be divided evenly.
fn open_stream<P: Pattern, L: Link + Send>(cx: &Context<'_>, case: &Case) -> Result<Box<dyn Loops + Send>> {
    let [messages, streams] = [case.depth(), cx.threads / directions::<P>()];
    if messages < streams {
        return Err(Error::unsupported(format!("{messages} messages do not occupy {streams} streams")));
    }
    let [stream, direction] = [cx.thread / directions::<P>(), cx.thread % directions::<P>()];
    let share = messages / streams + u32::from(stream < messages % streams);
    let case = case.clone().with(Depth(share));
    Ok(match (P::BOTH_WAYS, direction) {
        (false, _) => Box::new(PatternKernel::<P, L>::open(cx, &case)?),
        (true, 0) => Box::new(PatternKernel::<Stream, L>::open(cx, &case)?),
        (true, _) => {
            // The rank that answers sends.
            let role = if cx.role == Role::Active { Role::Passive } else { Role::Active };
            Box::new(PatternKernel::<ReverseStream, L>::open(&Context { role, ..*cx }, &case)?)
        }
    })
}

/// A stream from the rank that answers to the rank that is timed.
enum ReverseStream {}

impl Pattern for ReverseStream {
    const METRIC: Metric = Stream::METRIC;
    const METHOD: Method = Stream::METHOD;
    const BOTH_WAYS: bool = Stream::BOTH_WAYS;

    fn messages(depth: u32) -> u32 {
        Stream::messages(depth)
    }

    fn work(bytes: u64, depth: u64) -> Work {
        Stream::work(bytes, depth)
    }

    #[inline(always)]
    fn active<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        Stream::passive(link, depth)
    }

    #[inline(always)]
    fn passive<L: Link>(link: &mut L, depth: u32) -> Result<()> {
        Stream::active(link, depth)
    }
}

/// Opens and closes connections over TCP.
pub(crate) fn connections_over_tcp(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, ip| {
        set_options(session, ip, ipproto::TCP, NoDelay::On)?;
        run::<Connections>(session)
    })
}

/// Runs datagrams at an offered rate over UDP.
pub(crate) fn paced_datagrams(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, ip| by_offload(session, ip, run_datagrams::<PacedDatagrams>))
}

/// Calls `run` with and without trains of datagrams, as chosen.
fn by_offload<'a>(
    session: &mut Session<'a>,
    ip: IpVersion,
    run: impl Fn(&mut Session<'a>) -> Result<()>,
) -> Result<()> {
    session.split(|session, offload: Offload| {
        set_options(session, ip, ipproto::TCP, NoDelay::On)?;
        let team = team(session)?;
        team.set_link_options(LinkOptions { offload, ..team.link_options() });
        run(session)
    })
}

/// Runs open-loop requests over TCP.
pub(crate) fn requests_over_tcp(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, ip| {
        session.split(|session, nodelay: NoDelay| {
            set_options(session, ip, ipproto::TCP, nodelay)?;
            run_requests::<RequestStream<Tcp>>(session)
        })
    })
}

/// Sets how the team makes its next connections: with one stream, and the default of offload, until these are set.
fn set_options(session: &Session<'_>, ip: IpVersion, protocol: Protocol, nodelay: NoDelay) -> Result<()> {
    let socket = SocketOptions { protocol, nodelay: nodelay == NoDelay::On, ..socket_options(session.plan)? };
    let low_water = session.plan.text(&LOW_WATER).filter(|_| session.bench.has(&LOW_WATER));
    let low_water = low_water.map(low_water_bytes).transpose()?;
    team(session)?.set_link_options(LinkOptions { ip, socket, low_water, ..LinkOptions::default() });
    Ok(())
}

fn team<'a>(session: &Session<'a>) -> Result<&'a SocketTeam> {
    let team: &dyn std::any::Any = session.team;
    team.downcast_ref()
        .ok_or_else(|| Error::unsupported("needs ranks that are connected by sockets; run it without MPI"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        assert_eq!(buffer("4M").unwrap(), 4 << 20);
        for text in ["", "x", "0", "1", "2G", "-1"] {
            assert!(SOCKET_BUFFER.read(text).is_err(), "{text}");
        }
        for (name, number) in
            [("EF", 46), ("ef", 46), ("CS1", 8), ("AF41", 34), ("af13", 14), ("0", 0), ("63", 63), ("be", 0)]
        {
            assert_eq!(class(name).unwrap(), number, "{name}");
        }
        assert_eq!(low_water_bytes("64K").unwrap(), 64 << 10);
        for text in ["", "x", "0", "1G"] {
            assert!(LOW_WATER.read(text).is_err(), "{text}");
        }
        for text in ["", "64", "-1", "+46", "CS8", "AF44", "AF1", "AF111", "high", "0x2e", "CS"] {
            assert!(DSCP.read(text).unwrap_err().to_string().contains("DSCP"), "{text}");
        }
        assert!(CONGESTION.read("cubic").is_ok());
        for text in ["", "a b", "../x", "much_too_long_name"] {
            assert!(CONGESTION.read(text).is_err(), "{text}");
        }
    }
}
