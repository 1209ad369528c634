//! A connected stream socket, TCP or Unix domain.

use std::{
    fmt,
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

/// A connected stream socket.
#[derive(Debug)]
pub enum Stream {
    /// A TCP socket.
    Tcp(TcpStream),
    /// A Unix-domain socket.
    Unix(UnixStream),
}

/// The address of a listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A name in the abstract Unix-domain namespace of a host; it leaves no file behind.
    Unix(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(name) => write!(f, "the Unix-domain socket {name}"),
        }
    }
}

impl Stream {
    /// Sets the longest time for which one read or one write waits.
    pub fn set_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        sockopt::set_socket_timeout(self, Timeout::Recv, limit)?;
        Ok(sockopt::set_socket_timeout(self, Timeout::Send, limit)?)
    }

    /// Sets whether reads and writes return without waiting.
    pub fn set_nonblocking(&self, yes: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(yes),
            Stream::Unix(stream) => stream.set_nonblocking(yes),
        }
    }

    /// Returns another handle of the same connection.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Closes both directions; a read that waits returns.
    pub fn shutdown(&self) {
        let both = std::net::Shutdown::Both;
        // Fails if the connection is closed already.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(both),
            Stream::Unix(stream) => stream.shutdown(both),
        };
    }

    /// Returns the address of the other end; `None` for Unix-domain sockets.
    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }
}

/// Returns the address with this name in the abstract namespace.
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

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(into),
            Stream::Unix(stream) => (&mut &*stream).read(into),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).write(from),
            Stream::Unix(stream) => (&mut &*stream).write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
