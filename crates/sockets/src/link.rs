//! Links: connections between two ranks that carry the payload of a case.

pub(crate) mod datagrams;
pub(crate) mod paced;
pub(crate) mod request;
pub(crate) mod stream;
mod tcp_info;
mod trains;
mod transfer;
mod zero_copy;

use std::{
    io::IoSliceMut,
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    ops::Range,
    os::fd::OwnedFd,
    time::Duration,
};

use ombx_core::{
    benchmark::{
        Case, Context, Kernel, Method, Metric, Named, Parameter, ParameterValue, Reader, Role, Value, Work,
        if_chosen,
        payload::{Fill, Slots},
    },
    error::{Error, Result},
    measure::plan::Plan,
    result::Check,
    unit::{Rank, parse_numbers},
};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with,
        connect, ipproto, recv, recvmsg, send, socket_with,
        sockopt::{Timeout, set_socket_linger, set_socket_timeout},
    },
};
use serde::{Deserialize, Serialize};

use self::{
    stream::carries,
    transfer::{Buffer, TRANSFER_TIMEOUT, closed, failed},
};
use crate::{
    control::{Listener, Token, listener},
    options::LinkOptions,
    session::SocketTeam,
    socket::{Address, Deadline, IpVersion, MPTCP, Stream},
};

/// Maximum number of streams between two ranks, as in iperf3.
const MAX_STREAMS: u32 = 128;

/// Number of streams between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Streams(pub(crate) u32);

impl ParameterValue for Streams {
    const PARAMETER: &'static Parameter = &Parameter::read_by(
        "streams",
        "NUMBERS",
        "Connections over which the messages of a window are divided, each number with a row, for example: \
         --streams 8 or --streams 1..16",
        Reader::List(|text| Ok(parse(text)?.into_iter().map(Streams).map(Value::new).collect())),
    )
    .usually("1")
    .named(Named::First(if_chosen::<Streams>));
    const DEFAULT: Streams = Streams(1);

    fn parse(text: &str) -> Result<Streams> {
        match *parse(text)? {
            [streams] => Ok(Streams(streams)),
            _ => Err(Error::usage(format!("{text:?} is not one number of streams"))),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Reads a list of numbers of streams: `8`, `1,3,10` or `1..16`, which doubles.
fn parse(text: &str) -> Result<Vec<u32>> {
    let bad = || {
        let examples = "use numbers such as 8 or 1,4 or a range such as 1..16";
        Error::usage(format!("{text:?} is no list of 1 to {MAX_STREAMS} streams; {examples}"))
    };
    let streams = parse_numbers(text, MAX_STREAMS.into()).ok_or_else(bad)?;
    Ok(streams.into_iter().map(|number| number as u32).collect())
}

/// Returns an error with the reason if a window has fewer messages than streams.
pub(crate) fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let (Streams(streams), least) = (case.get(), plan.depths().into_iter().min().unwrap_or(1));
    if streams > least {
        return Err(format!(
            "--streams {streams} divides the messages of a window, which has {least}: give --window \
             {streams} or fewer streams"
        ));
    }
    Ok(())
}

/// Bytes of the cookie.
const COOKIE: usize = 8;
/// A connection that sends nothing for this time is of another program.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Kernel of connections that one rank opens and the other accepts.
pub(crate) struct Connections {
    /// Where the active rank connects to.
    to: SocketAddr,
    /// Where the passive rank accepts.
    listener: Option<OwnedFd>,
    cookie: [u8; COOKIE],
    slots: Slots,
    /// The cookie and a message on the active rank; a message on the other.
    outgoing: Buffer,
    incoming: Buffer,
    rank: Rank,
    peer: Rank,
}

/// What the other rank must know of a listener.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Entrance {
    port: u16,
    cookie: [u8; COOKIE],
}

/// Returns a listener and what the other rank must know.
fn listen(at: IpAddr) -> Result<(TcpListener, Entrance)> {
    let failed = |e: std::io::Error| Error::unsupported(format!("cannot listen on {at}: {e}"));
    let listener = TcpListener::bind((at, 0)).map_err(failed)?;
    set_socket_timeout(&listener, Timeout::Recv, Some(REQUEST_TIMEOUT)).map_err(|e| failed(e.into()))?;
    let port = listener.local_addr().map_err(failed)?.port();
    Ok((listener, Entrance { port, cookie: random()? }))
}

/// Returns bytes that nobody can guess.
fn random() -> Result<[u8; COOKIE]> {
    Ok(Token::random()?.bytes().first_chunk().copied().unwrap_or_default())
}

impl Connections {
    /// Sends bytes on a new connection, in most cases with one call.
    #[inline(always)]
    fn send_all(&self, socket: &OwnedFd, mut range: Range<usize>) -> Result<()> {
        loop {
            match send(socket, &self.outgoing.bytes()[range.clone()], SendFlags::NOSIGNAL) {
                Ok(sent) if sent == range.len() => return Ok(()),
                Ok(sent) => range.start += sent,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// Receives the rest of a message.
    #[inline(always)]
    fn receive_rest(&mut self, socket: &OwnedFd, mut received: usize) -> Result<()> {
        let bytes = self.slots.bytes as usize;
        while received < bytes {
            match recv(socket, &mut self.incoming.bytes_mut()[received..bytes], RecvFlags::empty()) {
                Ok((0, _)) => return Err(closed()),
                Ok((read, _)) => received += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(())
    }

    /// Receives a request. Returns whether it has the cookie.
    #[inline(always)]
    fn receive_request(&mut self, socket: &OwnedFd) -> Result<bool> {
        let (mut cookie, bytes) = ([0; COOKIE], self.slots.bytes as usize);
        let mut parts =
            [IoSliceMut::new(&mut cookie), IoSliceMut::new(&mut self.incoming.bytes_mut()[..bytes])];
        match recvmsg(socket, &mut parts, &mut RecvAncillaryBuffer::default(), RecvFlags::WAITALL) {
            Ok(received) if received.bytes >= COOKIE && cookie == self.cookie => {
                self.receive_rest(socket, received.bytes - COOKIE).map(|()| true)
            }
            // Another program.
            Ok(_) | Err(_) => Ok(false),
        }
    }
}

/// Returns the error of a connection that was not opened.
#[cold]
fn not_opened(to: SocketAddr, errno: Errno) -> Error {
    match errno {
        Errno::ADDRNOTAVAIL => Error::fabric(format!(
            "no free port to connect to {to} from: end programs that open many connections, or widen \
             net.ipv4.ip_local_port_range"
        )),
        _ => Error::fabric(format!("cannot connect to {to}: {errno}")),
    }
}

impl Kernel for Connections {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "on rank 0: socket, setsockopt, connect, a send, a recv of a message of the same size, and \
                a close that resets the connection; on rank 1: accept, a recv, a send and a close",
        untimed: "the listening socket, buffers, filling and checking them",
        like: "netperf TCP_CRR, which closes without a reset and thus needs a range of ports of its own",
    };

    fn work(case: &Case) -> Work {
        Work { bytes: 2 * case.bytes.0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = Slots::new(case.bytes.0, 1);
        cx.agree(carries(slots))?;
        cx.afford(2 * slots.total())?;
        let team: &SocketTeam = cx.fabric()?;
        let ip = team.link_options().ip;
        let listener = match cx.role {
            Role::Passive => listen(team.listen_address(cx.peer, ip)).map(Some),
            Role::Active => Ok(None),
        };
        let (listener, Entrance { port, cookie }) = match cx.agree(listener)? {
            Some((listener, entrance)) => {
                team.send_message(cx.peer, &entrance)?;
                (Some(OwnedFd::from(listener)), entrance)
            }
            None => (None, team.receive_message(cx.peer, "port")?),
        };
        let address = match listener {
            Some(_) => Ok(ip.loopback().into()),
            None => team.address_of(cx.peer, ip),
        };
        let address = cx.agree(address)?;
        let mut outgoing = Buffer::touched(COOKIE as u64 + slots.total());
        if listener.is_none() {
            outgoing.bytes_mut()[..COOKIE].copy_from_slice(&cookie);
        }
        Ok(Connections {
            to: address.at(port),
            listener,
            cookie,
            slots,
            outgoing,
            incoming: Buffer::touched(slots.total()),
            rank: cx.rank(),
            peer: cx.peer,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, &mut self.outgoing.bytes_mut()[COOKIE..]);
        fill.poison(self.peer, self.slots, self.incoming.bytes_mut());
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let family = if self.to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP));
        let socket = socket.map_err(failed)?;
        set_socket_linger(&socket, Some(Duration::ZERO)).map_err(failed)?;
        connect(&socket, &self.to).map_err(|errno| not_opened(self.to, errno))?;
        self.send_all(&socket, 0..COOKIE + self.slots.bytes as usize)?;
        self.receive_rest(&socket, 0)
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        let (mut silence, start) = (Duration::ZERO, COOKIE);
        loop {
            let Some(listener) = &self.listener else { return Err(closed()) };
            match accept_with(listener, SocketFlags::CLOEXEC) {
                Ok(socket) if self.receive_request(&socket)? => {
                    return self.send_all(&socket, start..start + self.slots.bytes as usize);
                }
                Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) if silence < TRANSFER_TIMEOUT => silence += REQUEST_TIMEOUT,
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        Ok(fill.check(self.peer, self.slots, self.incoming.bytes(), self.rank))
    }
}

/// Two ranks connect within this time.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of stream socket.
pub(crate) trait SocketKind: 'static {
    /// Whether the socket is a Unix-domain socket. Otherwise it is a TCP socket.
    const UNIX: bool = false;
    /// Whether sends avoid a copy (`MSG_ZEROCOPY`).
    const ZERO_COPY: bool = false;
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

/// Opens the listener of the passive rank.
fn listen_as<K: SocketKind>(cx: &Context<'_>, team: &SocketTeam, options: &LinkOptions) -> Result<Listener> {
    if !K::UNIX {
        return Listener::tcp(team.listen_address(cx.peer, options.ip), &options.socket, *team.token());
    }
    options.socket.without_tcp()?;
    if !team.same_host(cx.rank(), cx.peer) {
        let [here, there] = [cx.rank(), cx.peer].map(|rank| team.host(rank));
        return Err(Error::unsupported(format!("Unix-domain sockets do not connect {here} and {there}")));
    }
    Listener::unix(&options.socket, *team.token())
}

/// Returns the address at which this rank reaches the listener of its peer.
fn reachable(cx: &Context<'_>, team: &SocketTeam, ip: IpVersion, listener: Address) -> Result<Address> {
    match listener {
        Address::Tcp(at) => Ok(Address::Tcp(team.address_of(cx.peer, ip)?.at(at.port()))),
        Address::Unix(_) => Ok(listener),
    }
}

/// Opens the datagram socket of this rank, for messages behind a header of this many bytes.
fn datagram_socket(
    cx: &Context<'_>,
    options: &LinkOptions,
    slots: Slots,
    header: usize,
) -> Result<UdpSocket> {
    options.socket.without_tcp()?;
    options.without_low_water()?;
    let team: &SocketTeam = cx.fabric()?;
    let most = if options.ip == IpVersion::V4 { 65507 } else { 65527 } - header as u64;
    if slots.bytes > most {
        return Err(Error::unsupported(format!("a datagram carries at most {most} bytes")));
    }
    let at = team.listen_address(cx.peer, options.ip);
    let socket = UdpSocket::bind((at, 0));
    let socket = socket.map_err(|e| Error::unsupported(format!("this host has no {at}: {e}")))?;
    options.socket.set_before_connecting(&socket)?;
    Ok(socket)
}

/// Connects a datagram socket with that of the peer, and limits the time of a receive. Both ranks call it.
///
/// Returns a random number of this rank and that of the peer. Messages or rounds are numbered from them. So nobody guesses the next number
/// who cannot read the datagrams.
fn connect_datagrams(
    cx: &Context<'_>,
    options: &LinkOptions,
    socket: &UdpSocket,
    limit: Duration,
) -> Result<[u64; 2]> {
    let set_up = |e: std::io::Error| Error::fabric(format!("cannot set up a datagram socket: {e}"));
    let team: &SocketTeam = cx.fabric()?;
    let port = socket.local_addr().map_err(set_up)?.port();
    let own = u64::from_le_bytes(cx.agree(random())?);
    team.send_message(cx.peer, &(port, own))?;
    let (port, of_peer): (u16, u64) = team.receive_message(cx.peer, "port")?;
    let address = cx.agree(team.address_of(cx.peer, options.ip))?;
    let connected = socket.connect(address.at(port));
    let limited = connected.and_then(|()| Ok(set_socket_timeout(socket, Timeout::Recv, Some(limit))?));
    cx.agree(limited.map_err(set_up))?;
    Ok([own, of_peer])
}

/// Connects this rank with its peer. Both ranks call it.
pub(crate) fn connect_peers<K: SocketKind>(cx: &Context<'_>) -> Result<OwnedFd> {
    let team: &SocketTeam = cx.fabric()?;
    let options = team.link_options();
    let listener = match cx.role {
        Role::Passive => listen_as::<K>(cx, team, &options).map(Some),
        // The peer waits only for a rank that can reach it.
        Role::Active if !K::UNIX => team.address_of(cx.peer, options.ip).map(|_| None),
        Role::Active => Ok(None),
    };
    let deadline = || Deadline::after(CONNECT_TIMEOUT);
    let stream = match cx.agree(listener)? {
        Some(mut listener) => {
            team.send_message(cx.peer, listener.address())?;
            let failed = |e| Error::fabric(format!("rank {} did not connect: {e}", cx.peer));
            listener.accept(deadline()).map(|peer| peer.stream).map_err(failed)
        }
        None => {
            let listener = team.receive_message(cx.peer, "address")?;
            reachable(cx, team, options.ip, listener)
                .and_then(|to| listener::connect(&to, team.token(), b"", &options.socket, deadline()))
        }
    };
    let stream = stream.and_then(|stream| prepare::<K>(stream, &options));
    Ok(cx.agree(stream)?.into())
}

fn prepare<K: SocketKind>(stream: Stream, options: &LinkOptions) -> Result<Stream> {
    if K::UNIX {
        options.socket.set_before_connecting(&stream)?;
    } else {
        options.socket.set_tcp(&stream)?;
    }
    let limited = stream.set_timeout(Some(TRANSFER_TIMEOUT));
    limited.map_err(|e| Error::fabric(format!("cannot set the timeout of a connection: {e}")))?;
    if options.socket.protocol == MPTCP {
        tcp_info::check_mptcp(&stream)?;
    }
    if K::ZERO_COPY {
        let refused = |e| Error::unsupported(format!("this kernel cannot send without copying: {e}"));
        zero_copy::allow(&stream).map_err(refused)?;
    }
    Ok(stream)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod stream_counts_tests {
    use super::*;

    #[test]
    fn streams_are_lists_and_ranges() {
        assert_eq!(parse("10").unwrap(), [10]);
        assert_eq!(parse("1,3,128").unwrap(), [1, 3, 128]);
        assert_eq!(parse("1..16").unwrap(), [1, 2, 4, 8, 16]);
        for text in ["", "0", "129", "1K", "-1", "many", "8..1", "1,,2"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ombx_core::error::Kind::Usage, "{text}");
            assert!(error.to_string().contains("1 to 128 streams"), "{error}");
        }
        assert_eq!(Streams::PARAMETER.defaults().join(","), "1");
    }
}
