//! On which host each node is, how it is started there, and where others reach it.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket},
    process::Command,
};

use ombx_core::{
    error::{Error, Result},
    system::host_name::check_host,
};

use super::process::SUBCOMMAND;
use crate::host::is_here;

/// The hosts of a pipeline, to which nodes are dealt in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Reads a list with commas; none is this host.
    pub(super) fn parse(text: &str) -> Result<Hosts> {
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(|name| check_host(name).map(str::to_owned)).collect::<Result<_>>().map(Hosts)
    }

    /// Where a node is, if not here.
    pub(super) fn of(&self, node: u32) -> Option<&str> {
        let names = self.0.len().max(1);
        self.0.get(node as usize % names).map(String::as_str).filter(|name| !is_here(name))
    }

    /// How many of so many nodes are here.
    pub(super) fn local(&self, nodes: u32) -> u32 {
        (0..nodes).filter(|node| self.of(*node).is_none()).count() as u32
    }

    /// Whether all nodes are here, and thus have one clock.
    pub(super) fn are_one(&self) -> bool {
        self.0.iter().all(|name| is_here(name))
    }

    /// Where nodes listen; everywhere where that is none.
    pub(super) fn listens(&self) -> Option<IpAddr> {
        self.are_one().then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Where a node is reached that listens on a port.
    pub(super) fn address(&self, node: u32, port: u64) -> Result<String> {
        let address = |ip: IpAddr| SocketAddr::new(ip, port as u16).to_string();
        match (self.of(node), self.listens()) {
            (None, Some(here)) => Ok(address(here)),
            (None, None) => self.towards_the_others().map(address),
            (Some(host), _) => {
                let host = without_user(host);
                Ok(if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) {
                    format!("[{host}]:{port}")
                } else {
                    format!("{host}:{port}")
                })
            }
        }
    }

    /// This host's address as the first of the others sees it.
    fn towards_the_others(&self) -> Result<IpAddr> {
        let other = self.0.iter().find(|name| !is_here(name)).map_or("", |name| without_user(name));
        let failed = |e| Error::fabric(format!("no way to {other}: {e}"));
        let to = (other, 9).to_socket_addrs().map_err(failed)?.next();
        let to = to.ok_or_else(|| Error::fabric(format!("{other} has no address")))?;
        // Connecting a datagram socket sends nothing: it asks which way packets would go.
        let any = if to.is_ipv4() { IpAddr::from([0u8; 4]) } else { IpAddr::from([0u16; 8]) };
        let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
        socket.connect(to).map_err(failed)?;
        socket.local_addr().map(|address| address.ip()).map_err(failed)
    }
}

fn without_user(host: &str) -> &str {
    host.split_once('@').map_or(host, |(_, host)| host)
}

/// What starts a node's process on another host; what it is to do, and the token, go through its standard input.
pub(super) fn command(host: &str, name: &str) -> Result<Command> {
    let own = std::env::current_exe();
    let own = own.map_err(|e| Error::fabric(format!("this program does not find itself: {e}")))?;
    let own = own.to_str().ok_or_else(|| Error::fabric("the path of this program is no text"))?;
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let mut command = Command::new(std::env::var_os("OMBX_SSH").unwrap_or_else(|| OsString::from("ssh")));
    command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "--", host]);
    command.arg(format!("exec {} {SUBCOMMAND} {}", quoted(own), quoted(name)));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_dealt_to_hosts_in_turn() {
        let hosts = Hosts::parse("localhost,n02,me@n03").unwrap();
        let places: Vec<Option<&str>> = (0..4).map(|node| hosts.of(node)).collect();
        assert_eq!(places, [None, Some("n02"), Some("me@n03"), None]);
        assert_eq!((hosts.local(4), hosts.are_one(), hosts.listens()), (2, false, None));
        assert_eq!(hosts.address(2, 70).unwrap(), "n03:70");
        assert_eq!(Hosts::parse("fe80::1").unwrap().address(0, 70).unwrap(), "[fe80::1]:70");
        assert!(Hosts::parse("a,-oProxyCommand=x").is_err());
    }

    #[test]
    fn without_hosts_all_is_here() {
        for text in ["", "localhost"] {
            let hosts = Hosts::parse(text).unwrap();
            assert_eq!((hosts.of(5), hosts.local(3), hosts.are_one()), (None, 3, true));
            assert_eq!(hosts.address(0, 70).unwrap(), "127.0.0.1:70");
        }
    }

    #[test]
    fn a_remote_shell_gets_whole_words_and_no_secret() {
        let command = command("n02", "node 1").unwrap();
        let words: Vec<String> = command.get_args().map(|w| w.to_string_lossy().into_owned()).collect();
        let last = words.last().unwrap();
        assert!(last.starts_with("exec '/") && last.ends_with("' pipeline-process 'node 1'"), "{last}");
        assert_eq!(words[words.len() - 3..][..2], ["--", "n02"]);
    }
}
