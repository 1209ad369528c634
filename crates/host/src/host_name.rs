//! Host names: their validation, and which of them mean this host.

use std::net::IpAddr;

use ombx_record::error::{Error, Result};

use crate::environment;

/// Checks that a name is a host name or address, so that it cannot act as an option or a shell command.
///
/// The first character is a letter, digit, `:` or `[`. The others may also be `.`, `-`, `_`, `]` or `%`. A prefix `user@` is
/// allowed.
pub fn check_host(name: &str) -> Result<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%".contains(c);
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':' || c == '[')
            && part.chars().all(plain)
    };
    let good = match name.split_once('@') {
        Some((user, host)) => word(user) && word(host),
        None => word(name),
    };
    if good && name.len() <= 255 {
        Ok(name)
    } else {
        Err(Error::usage(format!("{name:?} is not the name or address of a host")))
    }
}

/// Returns whether a text has only ASCII letters, digits and the given marks, and cannot be an option.
pub fn is_plain(text: &str, marks: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

/// Returns whether `name` means this host: `localhost`, a loopback address, or the host's own name.
pub fn is_here(name: &str) -> bool {
    let own = environment::hostname();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            name.eq_ignore_ascii_case("localhost")
                || name.eq_ignore_ascii_case(&own)
                || (!name.contains('.') && short(name) == short(&own))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::host_name::*;

    #[test]
    fn options_and_commands_are_no_host_names() {
        for name in ["n01", "node-7.cluster", "10.0.0.1", "fe80::1%eth0", "[::1]", "::1", "me@n01", "a_b"] {
            assert!(check_host(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(x)",
            "`x`",
            "a\nb",
            "a\0b",
            "me@-x",
            "@a",
            "a@",
            "a@b@c",
            "é",
            "a/b",
            "'a",
            "a,b",
            ".",
            "%x",
        ] {
            assert!(check_host(name).is_err(), "{name:?}");
        }
        assert!(check_host(&"a".repeat(256)).is_err());
    }

    #[test]
    fn this_host_is_known_by_its_names() {
        let own = environment::hostname();
        assert!(["localhost", "127.0.0.1", "::1", &own].into_iter().all(is_here));
        assert!(!is_here("no-such-host") && !is_here("192.0.2.1") && !is_here("127.example"));
    }
}
