//! What a user can set on a socket, beside what is sent through it.

use std::os::fd::AsFd;

use ombx_core::error::{Error, Result};
use rustix::net::sockopt;

/// Options of the sockets that carry payload. What is not set is left to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// TCP sends small messages at once instead of waiting for more (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Bytes of the send and of the receive buffer (`SO_SNDBUF`, `SO_RCVBUF`); the kernel doubles them for its own use.
    pub buffer: Option<usize>,
    /// TCP's congestion control (`TCP_CONGESTION`).
    pub congestion: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { nodelay: true, buffer: None, congestion: None }
    }
}

impl Options {
    /// Sets the buffers, before the socket connects or listens: the window that TCP offers depends on them.
    pub fn before_connecting(&self, socket: impl AsFd) -> Result<()> {
        let Some(bytes) = self.buffer else { return Ok(()) };
        let failed = |e| Error::unsupported(format!("a socket buffer of {bytes} bytes cannot be set: {e}"));
        sockopt::set_socket_send_buffer_size(&socket, bytes).map_err(failed)?;
        sockopt::set_socket_recv_buffer_size(&socket, bytes).map_err(failed)?;
        let given = [sockopt::socket_send_buffer_size(&socket), sockopt::socket_recv_buffer_size(&socket)];
        // The kernel doubles what is asked and caps it silently.
        match given.into_iter().all(|given| given.is_ok_and(|given| given >= bytes)) {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "a socket buffer of {bytes} bytes is more than this host allows (net.core.wmem_max, net.core.rmem_max)"
            ))),
        }
    }

    /// Sets what is TCP's own.
    pub fn on_tcp(&self, socket: impl AsFd) -> Result<()> {
        sockopt::set_tcp_nodelay(&socket, self.nodelay)
            .map_err(|e| Error::fabric(format!("TCP_NODELAY cannot be set: {e}")))?;
        let Some(name) = &self.congestion else { return Ok(()) };
        sockopt::set_tcp_congestion(&socket, name).map_err(|e| {
            Error::unsupported(format!(
                "congestion control {name} cannot be set: {e}; net.ipv4.tcp_available_congestion_control lists what can"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn options_are_set_or_refused() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = Options { nodelay: true, buffer: Some(32 << 10), congestion: Some("cubic".into()) };
        options.before_connecting(&socket).unwrap();
        options.on_tcp(&socket).unwrap();
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        let wrong = Options { congestion: Some("no-such-thing".into()), buffer: Some(1 << 30), ..options };
        assert!(wrong.on_tcp(&socket).unwrap_err().to_string().contains("no-such-thing"));
        assert!(wrong.before_connecting(&socket).unwrap_err().to_string().contains("wmem_max"));
    }
}
