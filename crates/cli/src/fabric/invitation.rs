//! What a worker is told through its standard input, and nowhere where others on its host could read it.

use std::{
    env,
    io::{Read, Write},
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

use ombx_core::error::{Error, Result};
use ombx_sockets::Token;
use serde_json::{Value, json};

/// The longest invitation that is read.
const LONGEST: u64 = 1 << 22;

/// Which rank of which session a process is, and what it runs.
#[derive(Debug, Clone)]
pub(crate) struct Invitation {
    pub(crate) token: Token,
    /// Where the coordinator may be reached; port and addresses.
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) rank: u32,
    /// Which of its host's ranks it is, and how many there are.
    pub(crate) seat: (u32, u32),
    /// Its command line.
    pub(crate) argv: Vec<String>,
}

static INVITATION: OnceLock<Invitation> = OnceLock::new();

impl Invitation {
    /// Sends it to a worker.
    pub(crate) fn write(&self, to: &mut dyn Write) -> std::io::Result<()> {
        let Invitation { token, port, addresses, rank, seat, argv } = self;
        let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let text = json!({
            "token": token.to_string(), "port": port, "addresses": addresses, "rank": rank,
            "seat": [seat.0, seat.1], "argv": argv,
        });
        writeln!(to, "{text}")
    }

    pub(super) fn parse(text: &str) -> Option<Invitation> {
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
            seat: (number(&value["seat"][0])?, number(&value["seat"][1])?),
            argv: words(&value["argv"])?,
        })
    }

    /// Reads this process's own, once.
    pub(crate) fn accept() -> Result<&'static Invitation> {
        let mut text = String::new();
        let read = std::io::stdin().take(LONGEST).read_to_string(&mut text);
        let invitation = read.ok().and_then(|_| Invitation::parse(&text)).ok_or_else(|| {
            Error::usage(
                "ombx worker is started by ombx run, which tells it through standard input what to do",
            )
        })?;
        Ok(INVITATION.get_or_init(|| invitation))
    }

    /// Where the coordinator may be reached: where it says, and where the ssh session of this process came from.
    pub(crate) fn coordinator(&self) -> Vec<SocketAddr> {
        let ssh = env::var("SSH_CONNECTION").ok();
        let client = ssh.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<IpAddr>().ok());
        let mut addresses: Vec<IpAddr> = self.addresses.iter().copied().chain(client).collect();
        addresses.dedup();
        addresses.into_iter().map(|ip| (ip, self.port).into()).collect()
    }
}

/// The invitation of this process, if it is a worker.
pub(crate) fn invitation() -> Option<&'static Invitation> {
    INVITATION.get()
}

/// The command line that came with it.
pub(crate) fn invited_argv() -> Option<Vec<String>> {
    invitation().map(|invitation| invitation.argv.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_survives_the_pipe() {
        let token = Token::random().unwrap();
        let invitation = Invitation {
            token,
            port: 7,
            addresses: vec!["127.0.0.1".parse().unwrap(), "fe80::1".parse().unwrap()],
            rank: 3,
            seat: (1, 2),
            argv: vec!["ombx".into(), "run".into(), "a b\n\"'".into()],
        };
        let mut text = Vec::new();
        invitation.write(&mut text).unwrap();
        let read = Invitation::parse(std::str::from_utf8(&text).unwrap()).unwrap();
        assert!(token.is(read.token.bytes()));
        assert_eq!((read.port, read.rank, read.seat), (7, 3, (1, 2)));
        assert_eq!((read.addresses, read.argv), (invitation.addresses, invitation.argv));
        for text in ["", "{}", "[]", "{\"token\": 1}"] {
            assert!(Invitation::parse(text).is_none());
        }
    }
}
