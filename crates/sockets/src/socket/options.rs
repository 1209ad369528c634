//! Options of the sockets that carry payload.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
    os::fd::AsFd,
};

use ombx_core::error::{Error, Result};
use rustix::net::{AddressFamily, Protocol, ipproto, sockopt};
use serde::{Deserialize, Serialize};

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
    /// Name of TCP's congestion control (`TCP_CONGESTION`).
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
        match given.into_iter().all(|given| given.is_ok_and(|given| given >= bytes)) {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "a socket buffer of {bytes} bytes exceeds this host's limit; raise net.core.wmem_max and net.core.rmem_max"
            ))),
        }
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

/// A version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ip {
    #[default]
    V4,
    V6,
}

impl Ip {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Ip::V4 => "IPv4",
            Ip::V6 => "IPv6",
        }
    }

    pub(crate) fn loopback(self) -> IpAddr {
        match self {
            Ip::V4 => Ipv4Addr::LOCALHOST.into(),
            Ip::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    pub(crate) fn unspecified(self) -> IpAddr {
        match self {
            Ip::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Ip::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }
}

/// How connections that carry payload are made.
#[derive(Debug, Clone)]
pub(crate) struct LinkOptions {
    pub(crate) ip: Ip,
    pub(crate) socket: SocketOptions,
    /// Connections between two ranks.
    pub(crate) streams: u32,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions { ip: Ip::default(), socket: SocketOptions::default(), streams: 1 }
    }
}

impl LinkOptions {
    /// Returns an error if several streams are chosen, for a link that has one.
    pub(crate) fn one_stream(&self, link: &str) -> Result<()> {
        match self.streams {
            1 => Ok(()),
            streams => {
                Err(Error::unsupported(format!("{link} has one stream; leave out --streams {streams}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

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
