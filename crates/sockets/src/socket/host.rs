//! Identity and addresses of this host.

use std::{
    fs, io,
    net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket},
};

use ombx_core::system::environment;
pub use ombx_core::system::host_name::is_here;

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

#[cfg(test)]
mod tests {
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
