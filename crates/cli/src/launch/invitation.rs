//! Invitation of a worker to a session: its rank, the session's token, and its command line. A worker reads it from standard input,
//! since other users of its host can read arguments and environment.

use std::{
    env,
    ffi::OsString,
    io::{Read, Write},
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

use ombx_core::error::{Error, Result};
use ombx_sockets::Token;
use serde_json::{Value, json};

/// Maximum length in bytes.
const LONGEST: u64 = 1 << 22;

/// Rank of a process in a session, and the command line that it runs.
#[derive(Debug, Clone)]
pub(crate) struct Invitation {
    pub(crate) token: Token,
    /// Port and possible addresses of the coordinator.
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) rank: u32,
    /// Number of this rank among those of its host, and their count.
    pub(crate) on_host: (u32, u32),
    pub(crate) argv: Vec<String>,
}

static INVITATION: OnceLock<Invitation> = OnceLock::new();

impl Invitation {
    pub(crate) fn write(&self, to: &mut dyn Write) -> std::io::Result<()> {
        let Invitation { token, port, addresses, rank, on_host, argv } = self;
        let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let text = json!({
            "token": token.to_string(), "port": port, "addresses": addresses, "rank": rank,
            "on_host": [on_host.0, on_host.1], "argv": argv,
        });
        writeln!(to, "{text}")
    }

    pub(crate) fn parse(text: &str) -> Option<Invitation> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let words = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
        };
        Some(Invitation {
            token: value["token"].as_str()?.parse().ok()?,
            port: u16::try_from(number(&value["port"])?).ok()?,
            addresses: words(&value["addresses"])?.iter().filter_map(|a| a.parse().ok()).collect(),
            rank: number(&value["rank"])?,
            on_host: (number(&value["on_host"][0])?, number(&value["on_host"][1])?),
            argv: words(&value["argv"])?,
        })
    }

    /// Returns the possible addresses of the coordinator: its own list, and the origin of this process's ssh session.
    pub(crate) fn coordinator(&self) -> Vec<SocketAddr> {
        let ssh = env::var("SSH_CONNECTION").ok();
        let client = ssh.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<IpAddr>().ok());
        let mut addresses: Vec<IpAddr> = self.addresses.iter().copied().chain(client).collect();
        addresses.dedup();
        addresses.into_iter().map(|ip| (ip, self.port).into()).collect()
    }
}

/// Reads the invitation of this process from standard input and returns its command line.
pub(crate) fn accept() -> Result<Vec<OsString>> {
    let mut text = String::new();
    let read = std::io::stdin().take(LONGEST).read_to_string(&mut text);
    let invitation = read.ok().and_then(|_| Invitation::parse(&text)).ok_or_else(|| {
        Error::usage(
            "the standard input of ombx worker is not an invitation: use ombx run, which starts workers",
        )
    })?;
    Ok(INVITATION.get_or_init(|| invitation).argv.iter().map(OsString::from).collect())
}

/// Returns the invitation of this process if it is a worker.
pub(crate) fn accepted() -> Option<&'static Invitation> {
    INVITATION.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_read_as_it_was_written() {
        let token = Token::random().unwrap();
        let invitation = Invitation {
            token,
            port: 7,
            addresses: vec!["127.0.0.1".parse().unwrap(), "fe80::1".parse().unwrap()],
            rank: 3,
            on_host: (1, 2),
            argv: vec!["ombx".into(), "run".into(), "a b\n\"'".into()],
        };
        let mut text = Vec::new();
        invitation.write(&mut text).unwrap();
        let read = Invitation::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        assert!(token.is(read.token.bytes()));
        assert_eq!((read.port, read.rank, read.on_host), (7, 3, (1, 2)));
        assert_eq!((read.addresses, read.argv), (invitation.addresses, invitation.argv));
        for text in ["", "{}", "[]", "{\"token\": 1}"] {
            assert!(Invitation::parse(text).is_none());
        }
    }
}
