//! Arguments that let a server on another host run rank 1, for networks without ssh.

#[cfg(feature = "sockets")]
use std::net::SocketAddr;
use std::{fmt, path::PathBuf};

use clap::Args;
#[cfg(feature = "sockets")]
use ombx_core::error::{Error, Result};
use ombx_core::{system::host_name::check_host, unit::digits};
use serde::{Deserialize, Serialize};

/// Port of `ombx sockets serve`.
pub(crate) const PORT: u16 = 5444;

/// The server, and where its token is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConnectArgs {
    /// Host on which `ombx sockets serve` runs rank 1 of benchmarks over sockets, such as n02 or n02:5444
    #[arg(long, value_name = "HOST[:PORT]", value_parser = Server::parse, help_heading = "Ranks",
          conflicts_with_all = ["hosts", "hostfile", "rendezvous", "launcher_arg", "ssh", "interface"])]
    pub(crate) connect: Option<Server>,
    /// File with the token of that server; - for standard input [default: the variable OMBX_TOKEN]
    #[arg(long, value_name = "FILE", requires = "connect", help_heading = "Ranks")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Server {
    fn parse(text: &str) -> std::result::Result<Server, String> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or("not HOST or HOST:PORT")?)),
            // An IPv6 address has more than one colon.
            None => match text.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        if check_host(host).is_err() || host.contains('@') {
            return Err("not the name or address of a host".into());
        }
        let port = port.map_or(Some(PORT), |port| digits(port).filter(|port| *port > 0));
        let port = port.ok_or("its port is not a number from 1 to 65535")?;
        Ok(Server { host: host.to_owned(), port })
    }

    /// Returns the addresses of the server.
    #[cfg(feature = "sockets")]
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>> {
        use std::net::ToSocketAddrs;
        let found = (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        match found {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(Error::fabric(format!("--connect {}: the host has no address", self.host))),
            Err(e) => Err(Error::fabric(format!("--connect {}: {e}", self.host))),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_with_or_without_a_port() {
        for (text, host, port) in [
            ("n02", "n02", PORT),
            ("n02:7", "n02", 7),
            ("10.0.0.2:65535", "10.0.0.2", 65535),
            ("fe80::1%eth0", "fe80::1%eth0", PORT),
            ("[::1]", "::1", PORT),
            ("[::1]:7", "::1", 7),
        ] {
            assert_eq!(Server::parse(text), Ok(Server { host: host.into(), port }), "{text}");
        }
        assert_eq!(Server::parse("[::1]:7").unwrap().to_string(), "[::1]:7");
        for text in [
            "",
            ":7",
            "n02:",
            "n02:0",
            "n02:65536",
            "n02:x",
            "n02:+7",
            "-n",
            "a b",
            "me@n02",
            "[::1]7",
            "[]:7",
        ] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }
}
