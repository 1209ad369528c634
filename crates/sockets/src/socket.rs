//! Sockets and the hosts at their ends: streams, addresses, socket options, deadlines.

pub mod options;

use std::{
    fmt, fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use ombx_core::system::{clock::Since, environment};
use rustix::{
    event::Timespec,
    net::{
        RecvFlags, SendFlags, Shutdown, getpeername, recv, send, shutdown,
        sockopt::{self, Timeout},
    },
};

pub use self::options::SocketOptions;
pub(crate) use self::options::{Ip, LinkOptions, MPTCP};
pub use ombx_core::system::host_name::is_here;

/// A point in time at which waiting for another process ends.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    since: Since,
    limit: Duration,
}

impl Deadline {
    /// Returns the deadline that is `limit` from now.
    pub fn after(limit: Duration) -> Deadline {
        Deadline { since: Since::now(), limit }
    }

    /// Returns the remaining time; `None` once the deadline has passed.
    pub fn left(&self) -> Option<Duration> {
        self.limit.checked_sub(self.since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Returns the remaining time, or a `TimedOut` error once the deadline has passed.
    pub fn check(&self) -> io::Result<Duration> {
        self.left().ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "timed out"))
    }

    /// Returns the time from the creation of the deadline until it passes.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

/// Converts a duration to the kernel's type.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// Returns a text that is equal for two processes if and only if they share a kernel and its network interfaces.
/// Such processes reach each other through Unix-domain sockets and loopback.
pub fn identity() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {} {}", environment::hostname(), boot.trim(), network.display())
}

/// Returns the local address from which this host reaches another, `[USER@]HOST`. No packet is sent.
pub fn address_towards(host: &str) -> io::Result<IpAddr> {
    let name = host.rsplit('@').next().unwrap_or_default().trim_matches(['[', ']']);
    let own_address = |to: SocketAddr| {
        let any: IpAddr = if to.is_ipv4() { [0u8; 4].into() } else { [0u16; 8].into() };
        let socket = UdpSocket::bind((any, 0))?;
        // Connecting a datagram socket only selects a route.
        socket.connect(to)?;
        socket.local_addr().map(|own| own.ip())
    };
    let missing = Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} has no address")));
    (name, 9).to_socket_addrs()?.fold(missing, |found, to| found.or_else(|_| own_address(to)))
}

/// Returns an IPv6 address of this host with global scope.
pub(crate) fn global_ipv6() -> Option<Ipv6Addr> {
    first_global(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default())
}

/// Parses `/proc/net/if_inet6`: address, interface, prefix length, scope and flags in hexadecimal, then a name.
fn first_global(table: &str) -> Option<Ipv6Addr> {
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        (words.nth(2)? == "00").then(|| Ipv6Addr::from_bits(address))
    })
}

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

#[cfg(test)]
mod deadline_tests {
    use super::*;

    #[test]
    fn a_deadline_passes() {
        assert!(Deadline::after(Duration::from_secs(60)).left().is_some());
        let now = Deadline::after(Duration::ZERO);
        assert_eq!(now.left(), None);
        assert_eq!(now.check().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}

#[cfg(test)]
mod host_tests {
    use super::*;

    #[test]
    fn global_and_local_addresses_differ() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     fe800000000000000000000000000001 02 40 20 80     eth0\n\
                     fd000000000000000000000000000007 02 40 00 80     eth0\n";
        assert_eq!(first_global(table), "fd00::7".parse().ok());
        assert_eq!(first_global("00000000000000000000000000000001 01 80 10 80 lo\n"), None);
    }

    #[test]
    fn this_host_has_an_identity() {
        assert!(!identity().is_empty());
    }

    #[test]
    fn the_address_towards_loopback_is_loopback() {
        assert_eq!(address_towards("me@127.0.0.1").unwrap(), IpAddr::from([127, 0, 0, 1]));
        assert!(address_towards("no-such-host.invalid").is_err());
    }
}
