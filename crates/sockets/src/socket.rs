//! Sockets and the hosts at their ends: streams, addresses, socket options, deadlines.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs, UdpSocket},
    num::NonZeroU32,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    str::FromStr,
    time::Duration,
};

use ombx_core::error::{Error, Result};
use ombx_host::{environment, since::Since};
use rustix::{
    event::Timespec,
    net::{
        AddressFamily, Protocol, RecvFlags, SendFlags, Shutdown, getpeername, ipproto, recv, send, shutdown,
        sockopt::{self, Timeout},
    },
};
use serde::{Deserialize, Serialize};

pub use ombx_host::host_name::is_here;

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

/// An IP address, and of a link-local one of IPv6 the interface of this host on whose link it is (RFC 4007, section 6).
///
/// Numbers of interfaces are those of one host: an address that came from another host has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopedIp {
    ip: IpAddr,
    /// Number of the interface; 0 if it is not known, or not needed.
    scope: u32,
}

impl ScopedIp {
    /// Returns the address and this port.
    pub fn at(self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => (ip, port).into(),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.scope).into(),
        }
    }

    /// Returns the address without its interface.
    pub fn ip(self) -> IpAddr {
        self.ip
    }

    /// Returns whether the address says nothing without an interface.
    pub fn lacks_interface(self) -> bool {
        self.scope == 0 && self.is_link_local()
    }

    /// Returns whether the interface is known on whose link the address is.
    pub(crate) fn has_interface(self) -> bool {
        self.scope != 0 && self.is_link_local()
    }

    /// Returns the address on the link of another one.
    pub(crate) fn on_link_of(self, other: ScopedIp) -> ScopedIp {
        self.on(other.scope)
    }

    /// Returns whether this is an address of IPv6 that is unique on a link only.
    pub fn is_link_local(self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }

    /// Returns the address on the link of this interface.
    fn on(self, scope: u32) -> ScopedIp {
        ScopedIp { scope, ..self }
    }

    /// Returns the address on the link of each interface that has link-local addresses, if it lacks its interface; else the address.
    pub fn on_possible_links(self) -> Vec<ScopedIp> {
        if !self.lacks_interface() {
            return vec![self];
        }
        let table = fs::read_to_string(ADDRESSES_OF_IPV6).unwrap_or_default();
        let mut scopes: Vec<u32> =
            addresses(&table).filter(|own| own.scope == LINK).map(|own| own.interface).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes.into_iter().map(|scope| self.on(scope)).collect()
    }
}

impl From<IpAddr> for ScopedIp {
    fn from(ip: IpAddr) -> ScopedIp {
        ScopedIp { ip, scope: 0 }
    }
}

impl From<SocketAddr> for ScopedIp {
    /// Returns the address of an end of a connection; that of IPv4 also where a socket of IPv6 has it.
    fn from(address: SocketAddr) -> ScopedIp {
        let scope = match address {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(address) => address.scope_id(),
        };
        ScopedIp { ip: address.ip().to_canonical(), scope }
    }
}

impl FromStr for ScopedIp {
    type Err = String;

    /// Reads `10.0.0.1`, `fd00::1` or `fe80::1%eth0`.
    fn from_str(text: &str) -> std::result::Result<ScopedIp, String> {
        let Some((ip, interface)) = text.split_once('%') else {
            return text.parse::<IpAddr>().map(ScopedIp::from).map_err(|e| e.to_string());
        };
        let address = ip.parse::<Ipv6Addr>().map_err(|e| e.to_string())?;
        if !address.is_unicast_link_local() {
            return Err(format!(
                "only link-local addresses (fe80::/10) take an interface: leave out %{interface}"
            ));
        }
        let mut found =
            (text, 0).to_socket_addrs().map_err(|_| format!("this host has no interface {interface}"))?;
        found.next().map(ScopedIp::from).ok_or_else(|| format!("this host has no interface {interface}"))
    }
}

impl fmt::Display for ScopedIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            0 => self.ip.fmt(f),
            scope => write!(f, "{}%{scope}", self.ip),
        }
    }
}

/// Returns the loopback address of this host: that of IPv4, unless the host has that of IPv6 alone.
pub fn loopback() -> IpAddr {
    let is_there = |version: &IpVersion| UdpSocket::bind((version.loopback(), 0)).is_ok();
    [IpVersion::V4, IpVersion::V6]
        .iter()
        .find(|version| is_there(version))
        .unwrap_or(&IpVersion::V4)
        .loopback()
}

/// Returns the local address from which this host reaches another, `[USER@]HOST`. No packet is sent.
pub fn address_towards(host: &str) -> io::Result<IpAddr> {
    let name = host.rsplit('@').next().unwrap_or_default().trim_matches(['[', ']']);
    let missing = Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} has no address")));
    (name, 9).to_socket_addrs()?.fold(missing, |found, to| found.or_else(|_| own_address(to)))
}

/// Returns the local address from which this host reaches an address.
fn own_address(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { [0u8; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Connecting a datagram socket only selects a route.
    socket.connect(to)?;
    socket.local_addr().map(|own| own.ip())
}

/// Returns an IPv6 address of this host with global scope.
pub fn global_ipv6() -> Option<Ipv6Addr> {
    first_global(&fs::read_to_string(ADDRESSES_OF_IPV6).unwrap_or_default())
}

fn first_global(table: &str) -> Option<Ipv6Addr> {
    addresses(table).find(|own| own.scope == GLOBAL).map(|own| own.ip)
}

/// The IPv6 addresses of this host.
const ADDRESSES_OF_IPV6: &str = "/proc/net/if_inet6";
/// Scopes of these addresses, from the kernel's `include/net/ipv6.h`.
const GLOBAL: u32 = 0;
const LINK: u32 = 0x20;

/// An IPv6 address of this host.
struct OwnAddress {
    ip: Ipv6Addr,
    interface: u32,
    scope: u32,
}

/// Parses `/proc/net/if_inet6`: address, interface, prefix length, scope and flags in hexadecimal, then a name.
fn addresses(table: &str) -> impl Iterator<Item = OwnAddress> {
    table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let ip = Ipv6Addr::from_bits(u128::from_str_radix(words.next()?, 16).ok()?);
        let mut number = |at| u32::from_str_radix(words.nth(at)?, 16).ok();
        Some(OwnAddress { ip, interface: number(0)?, scope: number(1)? })
    })
}

/// A connected stream socket.
#[derive(Debug)]
pub struct Stream(OwnedFd);

/// The address of a listening socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Lets reads and writes return without waiting.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(self, true)?)
    }

    /// Lets reads and writes wait.
    pub fn set_blocking(&self) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(self, false)?)
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

/// Multipath TCP (RFC 8684), from linux/in.h.
pub(crate) const MPTCP: Protocol = match NonZeroU32::new(262) {
    Some(number) => Protocol::from_raw(number),
    None => ipproto::TCP,
};

/// Socket options. `None` leaves the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Protocol of an internet socket: TCP, or one that is used like TCP. Messages have TCP.
    #[serde(skip, default = "tcp")]
    pub protocol: Protocol,
    /// Whether TCP sends small messages without waiting for more (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Bytes of the send buffer and of the receive buffer (`SO_SNDBUF`, `SO_RCVBUF`).
    pub buffer: Option<usize>,
    /// Name of the congestion control of TCP and MPTCP (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// Class of the packets in the IP header (DSCP, RFC 2474), below 64.
    pub dscp: Option<u8>,
}

fn tcp() -> Protocol {
    ipproto::TCP
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        SocketOptions { protocol: ipproto::TCP, nodelay: true, buffer: None, congestion: None, dscp: None }
    }
}

impl SocketOptions {
    /// Sets the class of packets and the buffer sizes. Call it before the socket connects or listens: the first packet has the class, and
    /// the TCP window depends on the buffers.
    pub fn set_before_connecting(&self, socket: impl AsFd) -> Result<()> {
        self.set_class(&socket)?;
        let Some(bytes) = self.buffer else { return Ok(()) };
        let failed = |e| Error::unsupported(format!("cannot set a socket buffer of {bytes} bytes: {e}"));
        sockopt::set_socket_send_buffer_size(&socket, bytes).map_err(failed)?;
        sockopt::set_socket_recv_buffer_size(&socket, bytes).map_err(failed)?;
        let given = [sockopt::socket_send_buffer_size(&socket), sockopt::socket_recv_buffer_size(&socket)];
        // The kernel doubles the requested size and caps it without an error.
        let is_set = given.into_iter().all(|given| given.is_ok_and(|given| given >= bytes));
        if !is_set {
            return Err(Error::unsupported(format!(
                "a socket buffer of {bytes} bytes exceeds this host's limit; raise net.core.wmem_max and \
                 net.core.rmem_max"
            )));
        }
        Ok(())
    }

    fn set_class(&self, socket: impl AsFd) -> Result<()> {
        let Some(dscp) = self.dscp else { return Ok(()) };
        // The lower two bits are for congestion notification.
        let class = dscp << 2;
        let set = match sockopt::socket_domain(&socket) {
            Ok(AddressFamily::INET) => sockopt::set_ip_tos(&socket, class),
            Ok(AddressFamily::INET6) => sockopt::set_ipv6_tclass(&socket, class.into()),
            _ => {
                return Err(Error::unsupported(
                    "a Unix-domain socket sends no packets that have a DSCP; leave out --dscp",
                ));
            }
        };
        set.map_err(|e| Error::unsupported(format!("cannot set DSCP {dscp}: {e}")))
    }

    /// Returns an error if an option is chosen that only TCP has, for a link of another protocol.
    pub(crate) fn without_tcp(&self) -> Result<()> {
        match self.congestion {
            None => Ok(()),
            Some(_) => Err(Error::unsupported(
                "only TCP and MPTCP have a congestion control; leave out --congestion",
            )),
        }
    }

    /// Sets the options that only TCP has.
    pub fn set_tcp(&self, socket: impl AsFd) -> Result<()> {
        sockopt::set_tcp_nodelay(&socket, self.nodelay)
            .map_err(|e| Error::fabric(format!("cannot set TCP_NODELAY: {e}")))?;
        let Some(name) = &self.congestion else { return Ok(()) };
        sockopt::set_tcp_congestion(&socket, name).map_err(|e| {
            Error::unsupported(format!(
                "cannot set congestion control {name}: {e}; choose one of net.ipv4.tcp_available_congestion_control"
            ))
        })
    }
}

ombx_core::parameter! {
    /// Version of the internet protocol under TCP and UDP
    pub(crate) enum IpVersion: "ip", Always, default V4 {
        /// IPv4
        V4 = "4",
        /// IPv6
        V6 = "6",
    }
}

impl IpVersion {
    pub(crate) fn loopback(self) -> IpAddr {
        match self {
            IpVersion::V4 => Ipv4Addr::LOCALHOST.into(),
            IpVersion::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    pub(crate) fn unspecified(self) -> IpAddr {
        match self {
            IpVersion::V4 => Ipv4Addr::UNSPECIFIED.into(),
            IpVersion::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
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
    fn a_link_local_address_keeps_its_interface() {
        let lo: ScopedIp = "fe80::1%lo".parse().unwrap();
        let SocketAddr::V6(at) = lo.at(7) else { panic!("{lo}") };
        assert_eq!((at.ip().to_string().as_str(), at.port(), at.scope_id()), ("fe80::1", 7, 1));
        assert_eq!((ScopedIp::from(lo.at(7)), lo.on_possible_links()), (lo, vec![lo]));
        let sent: ScopedIp = ombx_core::codec::decode(&ombx_core::codec::encode(&lo)).unwrap();
        assert_eq!((sent, sent.to_string().as_str()), (lo, "fe80::1%1"));
        for (text, lacks) in
            [("fe80::1", true), ("fe80::1%1", false), ("fd00::1", false), ("10.0.0.1", false)]
        {
            let ip: ScopedIp = text.parse().unwrap();
            assert_eq!((ip.to_string().as_str(), ip.lacks_interface()), (text, lacks));
        }
        for text in ["fe80::1%no-such-if", "10.0.0.1%lo", "fd00::1%lo", "%lo", "fe80::1%", "n02"] {
            assert!(text.parse::<ScopedIp>().is_err(), "{text}");
        }
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:7".parse().unwrap();
        assert_eq!(ScopedIp::from(mapped).to_string(), "10.0.0.1");
    }

    #[test]
    fn interfaces_of_link_local_addresses_are_read() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     fe800000000000000000000000000001 0c 40 20 80     eth0\nbroken\n";
        let found: Vec<u32> =
            addresses(table).filter(|own| own.scope == LINK).map(|own| own.interface).collect();
        assert_eq!(found, [12]);
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

#[cfg(test)]
mod options_tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn options_are_set_or_refused() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = SocketOptions {
            buffer: Some(32 << 10),
            congestion: Some("cubic".into()),
            dscp: Some(46),
            ..SocketOptions::default()
        };
        options.set_before_connecting(&socket).unwrap();
        assert_eq!(sockopt::ip_tos(&socket).unwrap(), 46 << 2);
        options.set_tcp(&socket).unwrap();
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        let six = TcpListener::bind("[::1]:0").unwrap();
        SocketOptions { dscp: Some(8), ..SocketOptions::default() }.set_before_connecting(&six).unwrap();
        assert_eq!(sockopt::ipv6_tclass(&six).unwrap(), 8 << 2);
        let wrong =
            SocketOptions { congestion: Some("no-such-thing".into()), buffer: Some(1 << 30), ..options };
        assert!(wrong.set_tcp(&socket).unwrap_err().to_string().contains("no-such-thing"));
        assert!(wrong.set_before_connecting(&socket).unwrap_err().to_string().contains("wmem_max"));
    }
}
