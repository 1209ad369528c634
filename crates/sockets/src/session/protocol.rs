//! Messages between ranks and their coordinator.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    system::environment,
};
use rustix::net::sockopt;

use crate::{
    control::{Kind, MAX_BODY, Message},
    socket::{Stream, host},
};

/// Maximum bytes of one part of a message: what a frame holds beside the counts, the other rank and the flag.
pub(super) const MAX_PART: usize = MAX_BODY - 24;
/// A rank that takes nothing from its connection for this time is lost.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// What a rank says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) rank: u32,
    /// Build of the rank; all ranks of a session must have the same.
    pub(crate) version: String,
    pub(crate) host: String,
    /// See [`host::identity`].
    pub(crate) identity: String,
    /// A global address of the rank's host.
    pub(crate) ipv6: Option<Ipv6Addr>,
    /// The rank's address as the coordinator sees it; loopback if it is on the coordinator's host.
    pub(crate) seen: Option<IpAddr>,
}

impl Hello {
    pub(crate) fn of_this_process(rank: u32) -> Hello {
        Hello {
            rank,
            version: version(),
            host: environment::hostname(),
            identity: host::identity(),
            ipv6: host::global_ipv6(),
            seen: None,
        }
    }

    /// Returns the fields, separated by tabs.
    pub(crate) fn encode(&self) -> String {
        let Hello { rank, version, host, identity, ipv6, seen } = self;
        let (ipv6, seen) = (ipv6.map(|ip| ip.to_string()), seen.map(|ip| ip.to_string()));
        let [ipv6, seen] = [ipv6, seen].map(Option::unwrap_or_default);
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        format!("{rank}\t{}\t{}\t{}\t{ipv6}\t{seen}", clean(version), clean(host), clean(identity))
    }

    pub(crate) fn decode(text: &str) -> Option<Hello> {
        let fields: Vec<&str> = text.split('\t').collect();
        let [rank, version, host, identity, ipv6, seen] = fields.as_slice() else { return None };
        Some(Hello {
            rank: rank.parse().ok()?,
            version: (*version).into(),
            host: (*host).into(),
            identity: (*identity).into(),
            ipv6: ipv6.parse().ok(),
            seen: seen.parse().ok(),
        })
    }
}

/// Returns the build of ombx, which must be the same on all ranks of a session.
pub(super) fn version() -> String {
    format!("ombx {} sockets 2", env!("CARGO_PKG_VERSION"))
}

/// Returns the message that tells every rank about all ranks, in rank order.
pub(crate) fn rank_table(ranks: &[Hello]) -> Message {
    Message::new(Kind::RankTable).texts(ranks.iter().map(Hello::encode))
}

pub(crate) fn read_rank_table(message: &Message) -> Result<Vec<Hello>> {
    let ranks: Option<Vec<Hello>> = message.texts.iter().map(|text| Hello::decode(text)).collect();
    ranks
        .filter(|ranks| !ranks.is_empty() && ranks.iter().zip(0u32..).all(|(hello, rank)| hello.rank == rank))
        .ok_or_else(|| Error::fabric("the coordinator sent an invalid rank table"))
}

/// Returns one part of a message to or from rank `other`; `more` says whether another part follows.
pub(crate) fn data(other: u32, more: bool, part: &[u8]) -> Message {
    Message::new(Kind::Data).numbers([other.into(), more.into()]).data(part)
}

/// Returns the other rank of a [`Kind::Data`] message, and whether another part follows.
pub(crate) fn read_data(message: &Message) -> Option<(u32, bool)> {
    match (message.kind, message.numbers.as_slice()) {
        (Kind::Data, &[other, more @ 0..=1]) => Some((u32::try_from(other).ok()?, more == 1)),
        _ => None,
    }
}

/// Returns the message that ends a session. `why` is cut after 1000 characters; it is empty if the reason was reported.
pub(crate) fn end(code: u8, why: &str) -> Message {
    Message::new(Kind::End).numbers([code.into()]).texts([why.chars().take(1000).collect()])
}

/// Returns the exit code and the reason of a [`Kind::End`] message.
pub(crate) fn read_end(message: &Message) -> (u8, &str) {
    (message.numbers.first().and_then(|code| u8::try_from(*code).ok()).unwrap_or(6), message.text(0))
}

/// Sets the timeouts of a joined connection, so that both ends notice a host that is gone within 15 s.
pub(super) fn set_keep_alive(stream: &Stream) -> std::io::Result<()> {
    sockopt::set_socket_timeout(stream, sockopt::Timeout::Recv, None)?;
    sockopt::set_socket_timeout(stream, sockopt::Timeout::Send, Some(SEND_TIMEOUT))?;
    if stream.is_tcp() {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_nodelay(stream, true)?;
        sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
        sockopt::set_tcp_keepintvl(stream, Duration::from_secs(2))?;
        sockopt::set_tcp_keepcnt(stream, 3)?;
        sockopt::set_tcp_user_timeout(stream, 15_000)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_table_is_decoded_as_encoded() {
        let ranks: Vec<Hello> = (0..3).map(Hello::of_this_process).collect();
        assert_eq!(read_rank_table(&rank_table(&ranks)).unwrap(), ranks);
        assert!(read_rank_table(&rank_table(&ranks[1..])).is_err());
        assert!(read_rank_table(&rank_table(&[])).is_err());
    }

    #[test]
    fn a_part_of_a_message_fits_into_a_frame() {
        let part = data(7, true, &[0; MAX_PART]);
        assert_eq!((part.frame().body.len(), read_data(&part)), (MAX_BODY, Some((7, true))));
        assert_eq!(read_data(&Message::new(Kind::Data).numbers([1 << 32, 0])), None);
        assert_eq!(read_data(&Message::new(Kind::Data).numbers([1, 2])), None);
    }

    #[test]
    fn an_end_has_a_code_and_a_short_reason() {
        assert_eq!(read_end(&end(7, "disk full")), (7, "disk full"));
        assert_eq!(read_end(&end(7, &"ü".repeat(2000))).1.chars().count(), 1000);
        assert_eq!(read_end(&Message::new(Kind::End)), (6, ""));
    }
}
