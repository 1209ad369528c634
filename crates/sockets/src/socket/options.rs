//! Options of the sockets that carry payload.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::AsFd,
};

use ombx_core::error::{Error, Result};
use rustix::net::{Protocol, ipproto, sockopt};

/// Socket options. `None` leaves the kernel's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketOptions {
    /// Protocol of an internet socket: TCP, or one that is used like TCP.
    pub protocol: Protocol,
    /// Whether TCP sends small messages without waiting for more (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Bytes of the send buffer and of the receive buffer (`SO_SNDBUF`, `SO_RCVBUF`).
    pub buffer: Option<usize>,
    /// Name of TCP's congestion control (`TCP_CONGESTION`).
    pub congestion: Option<String>,
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        SocketOptions { protocol: ipproto::TCP, nodelay: true, buffer: None, congestion: None }
    }
}

impl SocketOptions {
    /// Sets the buffer sizes. Call it before the socket connects or listens: the TCP window depends on them.
    pub fn set_buffers(&self, socket: impl AsFd) -> Result<()> {
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
            ..SocketOptions::default()
        };
        options.set_buffers(&socket).unwrap();
        options.set_tcp(&socket).unwrap();
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        let wrong =
            SocketOptions { congestion: Some("no-such-thing".into()), buffer: Some(1 << 30), ..options };
        assert!(wrong.set_tcp(&socket).unwrap_err().to_string().contains("no-such-thing"));
        assert!(wrong.set_buffers(&socket).unwrap_err().to_string().contains("wmem_max"));
    }
}
