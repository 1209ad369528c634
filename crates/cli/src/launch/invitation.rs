//! Invitation of a worker to a session: its rank, the session's token, and its command line. A worker reads it from standard input,
//! since other users of its host can read arguments and environment.

use std::{
    env,
    ffi::OsString,
    io::Read,
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

use ombx_core::{
    codec,
    error::{Error, Result},
};
use ombx_sockets::Token;
use serde::{Deserialize, Serialize};

/// Maximum length in bytes.
const LONGEST: u64 = 1 << 22;

/// Rank of a process in a session, and the command line that it runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(LONGEST).read_to_end(&mut bytes);
    let invitation: Invitation = read.ok().and_then(|_| codec::decode(&bytes)).ok_or_else(|| {
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
        let read: Invitation = codec::decode(&codec::encode(&invitation)).unwrap();
        assert!(token.is(read.token.bytes()));
        assert_eq!((read.port, read.rank, read.on_host), (7, 3, (1, 2)));
        assert_eq!((read.addresses, read.argv), (invitation.addresses, invitation.argv));
        for bytes in [&b""[..], b"{}", b"no invitation"] {
            assert!(codec::decode::<Invitation>(bytes).is_none());
        }
    }
}
