//! A connection, whichever kind of socket carries it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::net::{self as unix, UnixStream},
    },
    time::Duration,
};

use rustix::net::sockopt::{self, Timeout};

use crate::deadline::Deadline;

/// A connected stream socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// Unix domain.
    Unix(UnixStream),
}

/// Where a stream can be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A name in the abstract Unix-domain namespace of a host, which leaves nothing in a file system.
    Unix(String),
}

impl Stream {
    /// Connects; every read and write has the deadline's limit from then on.
    pub fn connect(to: &Address, deadline: Deadline) -> io::Result<Stream> {
        let stream = match to {
            Address::Tcp(address) => Stream::Tcp(TcpStream::connect_timeout(address, deadline.check()?)?),
            // Connecting to a Unix-domain socket succeeds or fails at once, unless the listener's queue is full.
            Address::Unix(name) => Stream::Unix(UnixStream::connect_addr(&unix_address(name)?)?),
        };
        stream.limit(Some(deadline.limit()))?;
        Ok(stream)
    }

    /// The most time that a read or a write waits.
    pub fn limit(&self, limit: Option<Duration>) -> io::Result<()> {
        sockopt::set_socket_timeout(self, Timeout::Recv, limit)?;
        Ok(sockopt::set_socket_timeout(self, Timeout::Send, limit)?)
    }

    /// Whether reads and writes return at once.
    pub fn set_nonblocking(&self, yes: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(yes),
            Stream::Unix(stream) => stream.set_nonblocking(yes),
        }
    }

    /// Another handle of the same connection.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Ends both directions; whoever waits in a read returns.
    pub fn shutdown(&self) {
        let both = std::net::Shutdown::Both;
        // One that has ended already cannot be ended.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(both),
            Stream::Unix(stream) => stream.shutdown(both),
        };
    }

    /// Address of the other end, of TCP.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// Address of this end, of TCP.
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
        }
    }
}

/// A name in the abstract namespace.
pub(crate) fn unix_address(name: &str) -> io::Result<unix::SocketAddr> {
    unix::SocketAddr::from_abstract_name(name)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> OwnedFd {
        match stream {
            Stream::Tcp(stream) => stream.into(),
            Stream::Unix(stream) => stream.into(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
