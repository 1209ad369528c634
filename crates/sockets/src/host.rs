//! Which host this is, and whether two processes are on one.

use std::{fs, net::Ipv6Addr};

use ombx_core::system::environment;

/// Whether this machine is what a name means: `localhost`, a loopback address, or its own name.
pub fn is_here(name: &str) -> bool {
    let own = environment::hostname();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let loopback = name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    name.eq_ignore_ascii_case("localhost")
        || loopback
        || name.eq_ignore_ascii_case(&own)
        || (!is_address && !name.contains('.') && short(name) == short(&own))
}

/// What is the same for two processes if and only if they share a kernel and its network interfaces: those two reach each
/// other by Unix-domain sockets and by loopback.
pub fn identity() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {} {}", environment::hostname(), boot.trim(), network.display())
}

/// An IPv6 address by which others may reach this host, if it has one.
pub(crate) fn global_ipv6() -> Option<Ipv6Addr> {
    first_global(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default())
}

/// Of lines of address, interface, prefix length, scope, flags and name, all but the name in hexadecimal digits.
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
    fn a_global_address_is_told_from_local_ones() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     fe800000000000000000000000000001 02 40 20 80     eth0\n\
                     fd000000000000000000000000000007 02 40 00 80     eth0\n";
        assert_eq!(first_global(table), "fd00::7".parse().ok());
        assert_eq!(first_global("00000000000000000000000000000001 01 80 10 80 lo\n"), None);
    }

    #[test]
    fn this_host_is_known_by_its_names() {
        assert!(
            is_here("localhost")
                && is_here("127.0.0.1")
                && is_here("::1")
                && is_here(&environment::hostname())
        );
        assert!(!is_here("no-such-host") && !is_here("192.0.2.1") && !is_here("127.example"));
        assert!(!identity().is_empty());
    }
}
