//! The hosts of a pipeline and the addresses of its nodes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ombx_core::{
    error::{Error, Result},
    system::host_name::check_host,
};

use crate::{
    control::RemoteShell,
    socket::host::{address_towards, is_here},
};

/// The hosts of a pipeline. Node n is on host n modulo their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hosts {
    names: Vec<String>,
    /// Starts nodes on other hosts.
    pub(super) shell: RemoteShell,
}

impl Hosts {
    /// Reads a list with commas; an empty one means this host. Other hosts are reached by ssh.
    pub(super) fn parse(text: &str) -> Result<Hosts> {
        let names = text.split(',').filter(|name| !name.is_empty());
        let names = names.map(|name| check_host(name).map(str::to_owned)).collect::<Result<_>>()?;
        Ok(Hosts { names, shell: RemoteShell::ssh(&[]) })
    }

    /// Reaches other hosts by another program.
    pub(super) fn reached_by(self, shell: RemoteShell) -> Hosts {
        Hosts { shell, ..self }
    }

    /// Returns the host of a node; `None` for this host.
    pub(super) fn of(&self, node: u32) -> Option<&str> {
        let names = self.names.len().max(1);
        self.names.get(node as usize % names).map(String::as_str).filter(|name| !is_here(name))
    }

    /// Returns how many nodes with smaller numbers are on the host of a node.
    pub(super) fn earlier(&self, node: u32) -> u32 {
        (0..node).filter(|other| self.of(*other) == self.of(node)).count() as u32
    }

    /// Returns how many of the nodes are on this host.
    pub(super) fn local(&self, nodes: u32) -> u32 {
        (0..nodes).filter(|node| self.of(*node).is_none()).count() as u32
    }

    /// Returns whether all nodes are on this host, so that they share a clock.
    pub(super) fn are_here(&self) -> bool {
        self.names.iter().all(|name| is_here(name))
    }

    /// Returns the address on which nodes listen; `None` for every address.
    pub(super) fn listen_address(&self) -> Option<IpAddr> {
        self.are_here().then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Returns the address and port at which other nodes reach a node.
    pub(super) fn address(&self, node: u32, port: u16) -> Result<String> {
        let address = |ip: IpAddr| SocketAddr::new(ip, port).to_string();
        match (self.of(node), self.listen_address()) {
            (None, Some(here)) => Ok(address(here)),
            (None, None) => self.own_address().map(address),
            (Some(host), _) => {
                let host = host.split_once('@').map_or(host, |(_, host)| host);
                Ok(match host.parse::<IpAddr>() {
                    Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
                    _ => format!("{host}:{port}"),
                })
            }
        }
    }

    /// Returns the address of this host towards the first of the others.
    fn own_address(&self) -> Result<IpAddr> {
        let other = self.names.iter().find(|name| !is_here(name)).map_or("", String::as_str);
        address_towards(other).map_err(|e| Error::fabric(format!("no route to {other}: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_placed_on_hosts_in_turn() {
        let hosts = Hosts::parse("localhost,n02,me@n03").unwrap();
        let places: Vec<Option<&str>> = (0..4).map(|node| hosts.of(node)).collect();
        assert_eq!(places, [None, Some("n02"), Some("me@n03"), None]);
        assert_eq!((hosts.local(4), hosts.are_here(), hosts.listen_address()), (2, false, None));
        assert_eq!([0, 1, 2, 3, 4, 6].map(|node| hosts.earlier(node)), [0, 0, 0, 1, 1, 2]);
        assert_eq!(hosts.address(2, 70).unwrap(), "n03:70");
        assert_eq!(Hosts::parse("fe80::1").unwrap().address(0, 70).unwrap(), "[fe80::1]:70");
        assert!(Hosts::parse("a,-oProxyCommand=x").is_err());
    }

    #[test]
    fn without_hosts_every_node_is_on_this_host() {
        for text in ["", "localhost"] {
            let hosts = Hosts::parse(text).unwrap();
            assert_eq!((hosts.of(5), hosts.local(3), hosts.are_here()), (None, 3, true));
            assert_eq!(hosts.address(0, 70).unwrap(), "127.0.0.1:70");
        }
    }
}
