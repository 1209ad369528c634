//! A listening socket that admits only who shows the session's token, and is not held up by anybody else.

use std::{
    io::{self, Read},
    net::{IpAddr, SocketAddr, TcpListener},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixListener,
    },
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt},
};

use crate::{
    deadline::{Deadline, timespec},
    frame::{Frame, FrameError},
    options::Options,
    stream::{Address, Stream, unix_address},
    token::Token,
};

/// Kind of the first frame of a connection: the token, then what the guest says of itself.
pub const HELLO: u8 = 1;
/// A guest says at most this much; who says more is none.
pub const MOST_SAID: usize = 4096;
/// A guest shows its token within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Guests that have not shown their token yet; of more the oldest is turned away.
const MOST_WAITING: usize = 64;

/// What listens.
#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, String),
}

/// A listening socket of a session. One thread serves it: strangers that say nothing, or too much, keep nobody out.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    token: Token,
    waiting: Vec<Waiting>,
    refused: u64,
}

/// Someone who has connected and has not shown the token yet.
#[derive(Debug)]
struct Waiting {
    stream: Stream,
    said: Vec<u8>,
    since: Since,
}

/// Someone who has shown the token.
#[derive(Debug)]
pub struct Guest {
    /// The connection; it blocks.
    pub stream: Stream,
    /// What came after the token.
    pub said: Vec<u8>,
}

/// What listening was interrupted by.
#[derive(Debug)]
pub enum Knock {
    /// Someone who knows the token.
    Guest(Guest),
    /// Strangers: how many were turned away since the door opened.
    Strangers(u64),
}

impl Door {
    /// Listens at an address with any port; what is accepted there inherits the options.
    pub fn tcp(at: IpAddr, options: &Options, token: Token) -> Result<Door> {
        let failed = |e: io::Error| Error::fabric(format!("no port could be opened on {at}: {e}"));
        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
        let socket = socket.map_err(|e| Error::unsupported(format!("this host has no {at}: {e}")))?;
        if at.is_ipv6() && at.is_unspecified() {
            sockopt::set_ipv6_v6only(&socket, false).map_err(|e| failed(e.into()))?;
        }
        options.before_connecting(&socket)?;
        options.on_tcp(&socket)?;
        bind(&socket, &SocketAddr::new(at, 0)).map_err(|e| match e {
            Errno::ADDRNOTAVAIL => Error::unsupported(format!("this host has no {at}: {e}")),
            _ => failed(e.into()),
        })?;
        listen(&socket, 1024).map_err(|e| failed(e.into()))?;
        Ok(Door::new(Listener::Tcp(socket.into()), token))
    }

    /// Listens on every address of this host, by IPv6 and IPv4 where it has both.
    pub fn everywhere(token: Token) -> Result<Door> {
        let six = Door::tcp(IpAddr::from([0u16; 8]), &Options::default(), token);
        six.or_else(|_| Door::tcp(IpAddr::from([0u8; 4]), &Options::default(), token))
    }

    /// Listens under a fresh name in the abstract Unix-domain namespace of this host.
    pub fn unix(options: &Options, token: Token) -> Result<Door> {
        let failed = |e: io::Error| Error::fabric(format!("no Unix-domain socket could be opened: {e}"));
        // A name that nobody can guess and occupy; it is no secret.
        let name = format!("ombx-{}", Token::random()?);
        let address = unix_address(&name).map_err(failed)?;
        let listener = UnixListener::bind_addr(&address).map_err(failed)?;
        options.before_connecting(&listener)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Door::new(Listener::Unix(listener, name), token))
    }

    fn new(listener: Listener, token: Token) -> Door {
        Door { listener, token, waiting: Vec::new(), refused: 0 }
    }

    /// Where it listens.
    pub fn address(&self) -> Result<Address> {
        match &self.listener {
            Listener::Unix(_, name) => Ok(Address::Unix(name.clone())),
            Listener::Tcp(listener) => {
                let address = listener.local_addr();
                address.map(Address::Tcp).map_err(|e| Error::fabric(format!("a port has no address: {e}")))
            }
        }
    }

    /// Its port, of TCP.
    pub fn port(&self) -> u16 {
        match self.address() {
            Ok(Address::Tcp(address)) => address.port(),
            _ => 0,
        }
    }

    /// Connections turned away since it opened.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The next who shows the token; strangers are turned away and counted.
    pub fn admit(&mut self, deadline: Deadline) -> io::Result<Guest> {
        loop {
            if let Some(Knock::Guest(guest)) = self.serve(deadline.check()?)? {
                return Ok(guest);
            }
        }
    }

    /// Waits for at most `limit`: for a guest, or for a stranger who was turned away.
    pub fn serve(&mut self, limit: Duration) -> io::Result<Option<Knock>> {
        let refused = self.refused;
        let deadline = Deadline::after(limit);
        loop {
            if self.refused > refused {
                return Ok(Some(Knock::Strangers(self.refused)));
            }
            if deadline.left().is_none() {
                return Ok(None);
            }
            self.wait(deadline)?;
            self.let_in()?;
            if let Some(guest) = self.hear() {
                return Ok(Some(Knock::Guest(guest)));
            }
            if self.waiting.len() >= MOST_WAITING {
                self.waiting.remove(0);
                self.refused += 1;
            }
        }
    }

    /// Returns when someone connects, says something, or has been silent for too long.
    fn wait(&self, deadline: Deadline) -> io::Result<()> {
        let silent = self.waiting.iter().map(|w| PATIENCE.saturating_sub(w.since.elapsed())).min();
        let limit = deadline.left().unwrap_or_default();
        let mut fds = vec![PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
        fds.extend(self.waiting.iter().map(|w| PollFd::from_borrowed_fd(w.stream.as_fd(), PollFlags::IN)));
        match poll(&mut fds, Some(&timespec(silent.map_or(limit, |s| s.min(limit))))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Lets in who has connected, as far as there is room; the kernel keeps the others.
    fn let_in(&mut self) -> io::Result<()> {
        while self.waiting.len() < MOST_WAITING {
            let accepted = match &self.listener {
                Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
                Listener::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Whoever connected has gone again.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) => return Err(e),
            };
            if stream.set_nonblocking(true).is_ok() {
                self.waiting.push(Waiting { stream, said: Vec::new(), since: Since::now() });
            }
        }
        Ok(())
    }

    /// Hears everybody who waits, and turns away whoever is no guest.
    fn hear(&mut self) -> Option<Guest> {
        let mut at = 0;
        while at < self.waiting.len() {
            match self.waiting[at].hear(&self.token) {
                Heard::Nothing => at += 1,
                Heard::Stranger => {
                    self.waiting.remove(at);
                    self.refused += 1;
                }
                Heard::Hello(said) => {
                    let stream = self.waiting.remove(at).stream;
                    if stream.set_nonblocking(false).is_ok() {
                        return Some(Guest { stream, said });
                    }
                }
            }
        }
        None
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.listener {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

enum Heard {
    Nothing,
    Hello(Vec<u8>),
    Stranger,
}

impl Waiting {
    fn hear(&mut self, token: &Token) -> Heard {
        loop {
            match Frame::parse(&self.said, MOST_SAID) {
                Err(_) => return Heard::Stranger,
                Ok(Some((Frame { kind: HELLO, mut body }, used)))
                    if used == self.said.len()
                        && body.len() >= Token::BYTES
                        && token.is(&body[..Token::BYTES]) =>
                {
                    return Heard::Hello(body.split_off(Token::BYTES));
                }
                Ok(Some(_)) => return Heard::Stranger,
                Ok(None) => {}
            }
            let mut some = [0; 512];
            match self.stream.read(&mut some) {
                Ok(0) => return Heard::Stranger,
                Ok(read) => self.said.extend(&some[..read]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let late = self.since.elapsed() >= PATIENCE;
                    return if late { Heard::Stranger } else { Heard::Nothing };
                }
                Err(_) => return Heard::Stranger,
            }
        }
    }
}

/// Connects to a door of the same session and shows the token. `options` are those of the door.
pub fn enter(
    to: &Address,
    token: &Token,
    say: &[u8],
    options: &Options,
    deadline: Deadline,
) -> Result<Stream> {
    let failed = |e: io::Error| Error::fabric(format!("{} could not be reached: {e}", shown(to)));
    let mut stream = match to {
        Address::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP));
            let socket: OwnedFd = socket.map_err(|e| failed(e.into()))?;
            options.before_connecting(&socket)?;
            options.on_tcp(&socket)?;
            connect(&socket, address, deadline).map_err(failed)?;
            Stream::Tcp(socket.into())
        }
        Address::Unix(_) => {
            let stream = Stream::connect(to, deadline).map_err(failed)?;
            options.before_connecting(&stream)?;
            stream
        }
    };
    stream.limit(Some(deadline.limit())).map_err(failed)?;
    let hello = Frame::new(HELLO, [token.bytes(), say].concat());
    hello.write(&mut stream).map_err(|e: FrameError| failed(io::Error::other(e)))?;
    Ok(stream)
}

fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(name) => format!("the Unix-domain socket {name}"),
    }
}

/// A connection with a deadline: `SO_SNDTIMEO` bounds `connect` too.
fn connect(socket: &OwnedFd, to: &SocketAddr, deadline: Deadline) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(deadline.check()?))?;
    match rustix::net::connect(socket, to) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::AGAIN) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "nobody answered in time"))
        }
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests;
