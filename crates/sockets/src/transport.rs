//! Values of `--transport`: the kind of socket, the protocol and the options of each.

use ombx_core::{
    benchmark::{Case, Context, Depth, Kernel, Method, Metric, ParameterValue, Role, Work},
    error::{Error, Result},
    measure::{engine::run, open_kernel::Loops, row::KernelKind, session::Session},
    pacing::{
        mesh::Waiting,
        paced_threads::{ThreadGroup, run_grouped},
    },
    two_sided::{
        datagrams::run_datagrams,
        pattern::{Link, Pattern, PatternKernel, Stream},
        request::run_requests,
    },
};

use rustix::net::{Protocol, ipproto};

use crate::{
    link::{
        Connections, Streams as StreamCount, Tcp, Unix, ZeroCopyTcp, datagrams::Datagrams,
        paced::PacedDatagrams, request::RequestStream, stream::StreamLink,
    },
    options::{LOW_WATER, LinkOptions, NoDelay, Offload, ZeroCopy, low_water_bytes, socket_options},
    session::SocketTeam,
    socket::{IpVersion, MPTCP, SocketOptions},
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
