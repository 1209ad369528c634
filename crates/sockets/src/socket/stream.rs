//! A connected stream socket, TCP or Unix domain.

use std::{
    fmt,
    io::{self, Read, Write},
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::net::{
    RecvFlags, SendFlags, Shutdown, getpeername, recv, send, shutdown,
    sockopt::{self, Timeout},
};

/// A connected stream socket.
#[derive(Debug)]
pub struct Stream(OwnedFd);

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
        Ok(rustix::io::ioctl_fionbio(self, yes)?)
    }

    /// Returns another handle of the same connection.
    pub fn try_clone(&self) -> io::Result<Stream> {
        self.0.try_clone().map(Stream)
    }

    /// Closes both directions; a read that waits returns.
    pub fn shutdown(&self) {
        // Fails if the connection is closed already.
        let _ = shutdown(self, Shutdown::Both);
    }

    /// Returns the address of the other end; `None` for Unix-domain sockets.
    pub fn peer(&self) -> Option<SocketAddr> {
        getpeername(self).ok()??.try_into().ok()
    }

    /// Returns whether this is a TCP connection.
    pub fn is_tcp(&self) -> bool {
        sockopt::socket_domain(self).is_ok_and(|domain| domain != rustix::net::AddressFamily::UNIX)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Stream {
    fn from(socket: OwnedFd) -> Stream {
        Stream(socket)
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> OwnedFd {
        stream.0
    }
}

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self, into, RecvFlags::empty())?.0)
    }
}

impl Write for &Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        Ok(send(self, from, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
