//! The invitation of a rank over sockets: what it gets on its standard input.

use std::{
    env,
    io::{self, Read},
    net::SocketAddr,
};

use ombx_record::{
    codec,
    error::{Error, Result},
    order::each_once,
};
use ombx_sockets::{Token, socket::ScopedIp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::job::rank_job::RankJob;

/// Name of the hidden command of a rank that has an invitation.
pub const WORKER: &str = "worker";
/// Maximum length in bytes.
const LONGEST: u64 = 1 << 24;

/// Returns the message that another process of this build has written to the standard input of this one; `None` if there is none.
pub(crate) fn from_stdin<M: DeserializeOwned>() -> Option<M> {
    let mut bytes = Vec::new();
    let read = io::stdin().take(LONGEST).read_to_end(&mut bytes);
    read.ok().and_then(|_| codec::decode(&bytes))
}

/// Rank of a process in a session, and its job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Invitation {
    /// Secret of the session.
    pub token: Token,
    /// Port and possible addresses of the coordinator.
    pub port: u16,
    /// Addresses of the coordinator.
    pub addresses: Vec<ScopedIp>,
    /// Rank of the invited process.
    pub rank: u32,
    /// Number of this rank among those of its host, and their count.
    pub on_host: (u32, u32),
    /// What it runs.
    pub job: RankJob,
}

impl Invitation {
    /// Returns the possible addresses of the coordinator: its own list, and the origin of this process's ssh session.
    pub(crate) fn coordinator(&self) -> Vec<SocketAddr> {
        let ssh = env::var("SSH_CONNECTION").ok();
        let client = ssh.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<ScopedIp>().ok());
        // The launching process does not know the interface of this host towards a link-local address, the ssh session does.
        let mut addresses: Vec<ScopedIp> = match client {
            Some(client) if client.is_link_local() => vec![client],
            _ => Vec::new(),
        };
        addresses.extend(self.addresses.iter().flat_map(|address| address.on_possible_links()).chain(client));
        each_once(addresses.into_iter().map(|ip| ip.at(self.port)))
    }
}

/// Reads the invitation of this process from standard input.
pub(crate) fn accept() -> Result<Invitation> {
    from_stdin().ok_or_else(|| {
        Error::usage(
            "the standard input of ombx worker is not an invitation: use ombx run, which starts workers",
        )
    })
}

/// Place of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Host, or `None` for this one.
    pub host: Option<String>,
    /// Number of this rank among those of its host, and their count.
    pub on_host: (u32, u32),
}
