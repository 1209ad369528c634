//! A listening socket that admits only peers that show the session's token.

use std::{
    io::{self, Read},
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    thread::{Builder, JoinHandle},
    time::Duration,
};

use ombx_core::error::{Error, Result};
use ombx_host::{limits::start_error, since::Since};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
        socket_with, sockopt,
    },
};

use crate::{
    control::{
        Token,
        channel::{Frame, FrameError},
    },
    socket::{Address, Deadline, MPTCP, ScopedIp, SocketOptions, Stream, timespec},
};

/// Maximum length of the first frame of a connection in bytes: the token, then the peer's hello. Longer ones are rejected.
pub const MAX_HELLO: usize = 4096;
/// A peer that has not shown its token within this time is rejected.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a listener that ran out of file descriptors accepts again.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum number of connections that have not shown a token yet, unless more peers are expected; one more rejects the oldest.
const MAX_PENDING: usize = 64;

/// Flags of a listening socket.
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// Maximum number of connections in the kernel's queue.
const QUEUE: i32 = 1024;

/// A listening socket of a session. A silent or hostile connection delays no peer that shows the token.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    token: Token,
    pending: Vec<Pending>,
    most_pending: usize,
    /// Time within which a peer must show its token.
    hello_timeout: Duration,
    rejected: u64,
}

/// A connection that has not shown the token yet.
#[derive(Debug)]
struct Pending {
    stream: Stream,
    received: Vec<u8>,
    since: Since,
}

/// A connection that has shown the token.
#[derive(Debug)]
pub struct Peer {
    /// The connection, in blocking mode.
    pub stream: Stream,
    /// The bytes after the token.
    pub hello: Vec<u8>,
}

/// The result of connection attempts.
#[derive(Debug)]
pub enum Attempt {
    /// A peer has shown the token.
    Admitted(Peer),
    /// Connections were rejected: how many since the listener was opened.
    Rejected(u64),
}

impl Listener {
    /// Listens on any port of an address. Accepted connections inherit the options.
    pub fn tcp(at: IpAddr, options: &SocketOptions, token: Token) -> Result<Listener> {
        Listener::on_port(at.into(), 0, options, token)
    }

    /// Listens on a port of an address; 0 is any port. Accepted connections inherit the options.
    pub fn on_port(at: ScopedIp, port: u16, options: &SocketOptions, token: Token) -> Result<Listener> {
        let of_port = if port == 0 { String::new() } else { format!(", port {port}") };
        let failed = |e: Errno| Error::fabric(format!("cannot listen on {at}{of_port}: {e}"));
        let missing = |e: Errno| {
            without_mptcp(e, options)
                .unwrap_or_else(|| Error::unsupported(format!("this host has no {at}: {e}")))
        };
        let ip = at.ip();
        let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket =
            socket_with(family, SocketType::STREAM, FLAGS, Some(options.protocol)).map_err(missing)?;
        if ip.is_ipv6() && ip.is_unspecified() {
            sockopt::set_ipv6_v6only(&socket, false).map_err(failed)?;
        }
        options.set_before_connecting(&socket)?;
        options.set_tcp(&socket)?;
        if port != 0 {
            // Connections of an earlier server may still be in TIME_WAIT.
            sockopt::set_socket_reuseaddr(&socket, true).map_err(failed)?;
        }
        bind(&socket, &at.at(port)).map_err(|e| match e {
            Errno::ADDRNOTAVAIL => missing(e),
            _ => failed(e),
        })?;
        listen(&socket, QUEUE).map_err(failed)?;
        let address = getsockname(&socket).and_then(SocketAddr::try_from).map_err(failed)?;
        Ok(Listener::new(socket, Address::Tcp(address), token))
    }

    /// Listens on every address of this host, over IPv6 and IPv4 if it has both.
    pub fn on_all_addresses(port: u16, options: &SocketOptions, token: Token) -> Result<Listener> {
        let six = Listener::on_port(IpAddr::from([0u16; 8]).into(), port, options, token);
        six.or_else(|_| Listener::on_port(IpAddr::from([0u8; 4]).into(), port, options, token))
    }

    /// Listens under a random name in the abstract Unix-domain namespace of this host.
    pub fn unix(options: &SocketOptions, token: Token) -> Result<Listener> {
        let failed = |e: Errno| Error::fabric(format!("cannot listen on a Unix-domain socket: {e}"));
        // The name is random, so that no other user can occupy it in advance. It is no secret.
        let name = format!("ombx-{}", Token::random()?);
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None).map_err(failed)?;
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(failed)?;
        bind(&socket, &address).and_then(|()| listen(&socket, QUEUE)).map_err(failed)?;
        options.set_before_connecting(&socket)?;
        Ok(Listener::new(socket, Address::Unix(name), token))
    }

    fn new(socket: OwnedFd, address: Address, token: Token) -> Listener {
        Listener {
            socket,
            address,
            token,
            pending: Vec::new(),
            most_pending: MAX_PENDING,
            hello_timeout: HELLO_TIMEOUT,
            rejected: 0,
        }
    }

    /// Expects this many peers, which may connect at the same time.
    pub fn expect(&mut self, peers: usize) {
        self.most_pending = peers.max(MAX_PENDING);
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the TCP port; 0 for a Unix-domain socket.
    pub fn port(&self) -> u16 {
        match &self.address {
            Address::Tcp(address) => address.port(),
            Address::Unix(_) => 0,
        }
    }

    /// Returns the number of connections rejected since the listener was opened.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Waits for the next peer that shows the token. Other connections are rejected and counted.
    pub fn accept(&mut self, deadline: Deadline) -> io::Result<Peer> {
        loop {
            if let Some(Attempt::Admitted(peer)) = self.wait(deadline.check()?)? {
                return Ok(peer);
            }
        }
    }

    /// Passes each attempt to `each`, until that returns false.
    pub(crate) fn admit(mut self, mut each: impl FnMut(Attempt) -> bool) {
        let mut goes_on = true;
        while goes_on {
            match self.wait(Duration::from_secs(3600)) {
                Ok(Some(attempt)) => goes_on = each(attempt),
                Ok(None) => {}
                // Out of file descriptors, for instance: new connections wait in the kernel.
                Err(_) => std::thread::sleep(RETRY),
            }
        }
    }

    /// Waits until a peer is admitted or a connection is rejected; returns `None` after `limit`.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<Attempt>> {
        let rejected = self.rejected;
        let deadline = Deadline::after(limit);
        loop {
            if self.rejected > rejected {
                return Ok(Some(Attempt::Rejected(self.rejected)));
            }
            if deadline.left().is_none() {
                return Ok(None);
            }
            self.poll(deadline)?;
            self.accept_pending()?;
            if let Some(peer) = self.read_pending() {
                return Ok(Some(Attempt::Admitted(peer)));
            }
            if self.pending.len() >= self.most_pending {
                self.pending.remove(0);
                self.rejected += 1;
            }
        }
    }

    /// Waits until a connection arrives, sends bytes, or exceeds its time.
    fn poll(&self, deadline: Deadline) -> io::Result<()> {
        let silent = self.pending.iter().map(|p| self.hello_timeout.saturating_sub(p.since.elapsed())).min();
        let limit = deadline.left().unwrap_or_default();
        let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN)];
        fds.extend(self.pending.iter().map(|p| PollFd::new(&p.stream, PollFlags::IN)));
        match poll(&mut fds, Some(&timespec(silent.map_or(limit, |s| s.min(limit))))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Accepts connections up to the maximum; the others stay in the kernel's queue.
    fn accept_pending(&mut self) -> io::Result<()> {
        while self.pending.len() < self.most_pending {
            let stream = match accept_with(&self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => Stream::from(socket),
                Err(Errno::AGAIN) => return Ok(()),
                // The peer has closed the connection already.
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            };
            if stream.set_nonblocking().is_ok() {
                self.pending.push(Pending { stream, received: Vec::new(), since: Since::now() });
            }
        }
        Ok(())
    }

    /// Reads from every pending connection; returns the first that shows the token and rejects wrong ones.
    fn read_pending(&mut self) -> Option<Peer> {
        let mut at = 0;
        while at < self.pending.len() {
            match self.pending[at].read(&self.token, self.hello_timeout) {
                HelloState::Incomplete => at += 1,
                HelloState::Wrong => {
                    self.pending.remove(at);
                    self.rejected += 1;
                }
                HelloState::Hello(hello) => {
                    let stream = self.pending.remove(at).stream;
                    if stream.set_blocking().is_ok() {
                        return Some(Peer { stream, hello });
                    }
                }
            }
        }
        None
    }
}

/// How far the hello of a pending connection has arrived.
enum HelloState {
    Incomplete,
    Hello(Vec<u8>),
    Wrong,
}

impl Pending {
    fn read(&mut self, token: &Token, timeout: Duration) -> HelloState {
        loop {
            match Frame::parse(&self.received, MAX_HELLO) {
                Err(_) => return HelloState::Wrong,
                Ok(Some((Frame(mut body), used)))
                    if used == self.received.len()
                        && body.len() >= Token::BYTES
                        && token.is(&body[..Token::BYTES]) =>
                {
                    return HelloState::Hello(body.split_off(Token::BYTES));
                }
                Ok(Some(_)) => return HelloState::Wrong,
                Ok(None) => {}
            }
            let mut some = [0; 512];
            match (&self.stream).read(&mut some) {
                Ok(0) => return HelloState::Wrong,
                Ok(read) => self.received.extend(&some[..read]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let late = self.since.elapsed() >= timeout;
                    return if late { HelloState::Wrong } else { HelloState::Incomplete };
                }
                Err(_) => return HelloState::Wrong,
            }
        }
    }
}

/// Returns the error of a socket that this host cannot open because it has no MPTCP.
fn without_mptcp(error: Errno, options: &SocketOptions) -> Option<Error> {
    let unknown = matches!(error, Errno::NOPROTOOPT | Errno::PROTONOSUPPORT) && options.protocol == MPTCP;
    let advice = "this host has no MPTCP: set net.mptcp.enabled=1, with a kernel that contains it";
    unknown.then(|| Error::unsupported(advice))
}

/// Connects to a listener of the same session and shows the token, then `hello`.
///
/// `options` must equal those of the listener. Reads and writes of the connection time out after the deadline's limit.
pub fn connect(
    to: &Address,
    token: &Token,
    hello: &[u8],
    options: &SocketOptions,
    deadline: Deadline,
) -> Result<Stream> {
    let failed = |e: io::Error| Error::fabric(format!("cannot connect to {to}: {e}"));
    let (family, protocol) = match to {
        Address::Tcp(SocketAddr::V4(_)) => (AddressFamily::INET, Some(options.protocol)),
        Address::Tcp(SocketAddr::V6(_)) => (AddressFamily::INET6, Some(options.protocol)),
        Address::Unix(_) => (AddressFamily::UNIX, None),
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, protocol);
    let socket = socket.map_err(|e| without_mptcp(e, options).unwrap_or_else(|| failed(e.into())))?;
    options.set_before_connecting(&socket)?;
    if let Address::Tcp(_) = to {
        options.set_tcp(&socket)?;
    }
    connect_until(&socket, to, deadline).map_err(failed)?;
    let stream = Stream::from(socket);
    stream.set_timeout(Some(deadline.limit())).map_err(failed)?;
    let hello = Frame([token.bytes(), hello].concat());
    hello.write(&mut &stream).map_err(|e: FrameError| failed(io::Error::other(e)))?;
    Ok(stream)
}

/// Connects within a deadline: `SO_SNDTIMEO` limits `connect` too.
fn connect_until(socket: &OwnedFd, to: &Address, deadline: Deadline) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(deadline.check()?))?;
    let connected = match to {
        Address::Tcp(address) => rustix::net::connect(socket, address),
        Address::Unix(name) => SocketAddrUnix::new_abstract_name(name.as_bytes())
            .and_then(|address| rustix::net::connect(socket, &address)),
    };
    connected.map_err(|e| match e {
        Errno::INPROGRESS | Errno::AGAIN => {
            io::Error::new(io::ErrorKind::TimedOut, "no answer before the timeout")
        }
        _ => e.into(),
    })
}

/// Bytes of a thread's stack. A session has a thread for each rank.
const STACK: usize = 256 << 10;

/// Starts a thread with a small stack.
pub(crate) fn spawn_thread<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>> {
    let started = Builder::new().name(name.into()).stack_size(STACK).spawn(work);
    started.map_err(|e| Error::fabric(format!("cannot start a thread: {}", start_error(&e))))
}

#[cfg(test)]
mod tests;
