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

/// Maximum bytes of one part of a message: what a frame holds beside the counts, the other rank, the flag and the number.
pub(super) const MAX_PART: usize = MAX_BODY - 32;
/// Number of ranks in one message of the rank table. With the longest hello they fit into a frame.
const RANKS_OF_A_MESSAGE: usize = 128;
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
    /// Port on which the rank listens for other ranks; 0 if it does not.
    pub(crate) port: u16,
    /// The rank's address as the coordinator sees it; loopback if it is on the coordinator's host.
    pub(crate) seen: Option<IpAddr>,
}

impl Hello {
    pub(crate) fn of_this_process(rank: u32, port: u16) -> Hello {
        Hello {
            rank,
            version: version(),
            host: environment::hostname(),
            identity: host::identity(),
            ipv6: host::global_ipv6(),
            port,
            seen: None,
        }
    }

    /// Returns the fields, separated by tabs.
    pub(crate) fn encode(&self) -> String {
        let Hello { rank, version, host, identity, ipv6, port, seen } = self;
        let (ipv6, seen) = (ipv6.map(|ip| ip.to_string()), seen.map(|ip| ip.to_string()));
        let [ipv6, seen] = [ipv6, seen].map(Option::unwrap_or_default);
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        format!("{rank}\t{}\t{}\t{}\t{ipv6}\t{port}\t{seen}", clean(version), clean(host), clean(identity))
    }

    pub(crate) fn decode(text: &str) -> Option<Hello> {
        let fields: Vec<&str> = text.split('\t').collect();
        let [rank, version, host, identity, ipv6, port, seen] = fields.as_slice() else { return None };
        Some(Hello {
            rank: rank.parse().ok()?,
            version: (*version).into(),
            host: (*host).into(),
            identity: (*identity).into(),
            ipv6: ipv6.parse().ok(),
            port: port.parse().ok()?,
            seen: seen.parse().ok(),
        })
    }
}

/// Returns the build of ombx, which must be the same on all ranks of a session.
pub(crate) fn version() -> String {
    format!("ombx {} sockets 3", env!("CARGO_PKG_VERSION"))
}

/// Returns the messages that describe all ranks, in rank order, for every rank. Each has the number of all ranks.
pub(crate) fn rank_table(ranks: &[Hello]) -> impl Iterator<Item = Message> {
    let message = |part: &[Hello]| {
        Message::new(Kind::RankTable).numbers([ranks.len() as u64]).texts(part.iter().map(Hello::encode))
    };
    ranks.chunks(RANKS_OF_A_MESSAGE).map(message)
}

/// Adds the ranks of the next message of a rank table. Returns whether the table is complete.
pub(crate) fn read_rank_table(message: &Message, ranks: &mut Vec<Hello>) -> Result<bool> {
    let invalid = || Error::fabric("the coordinator sent an invalid rank table");
    for text in &message.texts {
        let hello = Hello::decode(text).filter(|hello| hello.rank as usize == ranks.len());
        ranks.push(hello.ok_or_else(invalid)?);
    }
    let (known, all) = (ranks.len() as u64, message.number(0));
    if message.texts.is_empty() || known > all { Err(invalid()) } else { Ok(known == all) }
}

/// Head of one part of a message between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Rank that the message is from, or for.
    pub(crate) other: u32,
    /// Whether another part follows.
    pub(crate) more: bool,
    /// Number of the message among those from one rank to another. Messages may arrive by different connections.
    pub(crate) number: u64,
}

/// Returns one part of a message to or from a rank.
pub(crate) fn data(Part { other, more, number }: Part, part: &[u8]) -> Message {
    Message::new(Kind::Data).numbers([other.into(), more.into(), number]).data(part)
}

/// Returns the head of a [`Kind::Data`] message.
pub(crate) fn read_data(message: &Message) -> Option<Part> {
    match (message.kind, message.numbers.as_slice()) {
        (Kind::Data, &[other, more @ 0..=1, number]) => {
            Some(Part { other: u32::try_from(other).ok()?, more: more == 1, number })
        }
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
pub(crate) fn set_keep_alive(stream: &Stream) -> std::io::Result<()> {
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
    use crate::control::{Token, listener::MAX_HELLO};

    #[test]
    fn a_rank_table_is_decoded_as_encoded() {
        for size in [1, 3, 128, 300] {
            let ranks: Vec<Hello> = (0..size).map(|rank| Hello::of_this_process(rank, 7)).collect();
            let (mut known, messages) = (Vec::new(), rank_table(&ranks).collect::<Vec<_>>());
            let complete: Vec<bool> =
                messages.iter().map(|message| read_rank_table(message, &mut known).unwrap()).collect();
            assert_eq!(complete.iter().filter(|complete| **complete).count(), 1, "{size}");
            assert!(complete.ends_with(&[true]) && known == ranks);
            assert!(read_rank_table(&messages[0], &mut known).is_err(), "twice");
        }
        let ranks: Vec<Hello> = (1..3).map(|rank| Hello::of_this_process(rank, 7)).collect();
        let message = rank_table(&ranks).next().unwrap();
        assert!(read_rank_table(&message, &mut Vec::new()).is_err(), "the first is missing");
        assert!(read_rank_table(&Message::new(Kind::RankTable), &mut Vec::new()).is_err());
    }

    #[test]
    fn a_part_of_a_message_fits_into_a_frame() {
        let head = Part { other: 7, more: true, number: u64::MAX };
        let part = data(head, &[0; MAX_PART]);
        assert_eq!((part.frame().body.len(), read_data(&part)), (MAX_BODY, Some(head)));
        for numbers in [&[1 << 32, 0, 0][..], &[1, 2, 0], &[1, 1]] {
            assert_eq!(read_data(&Message::new(Kind::Data).numbers(numbers.iter().copied())), None);
        }
    }

    #[test]
    fn a_message_of_the_rank_table_fits_into_a_frame() {
        let longest = "h".repeat(MAX_HELLO - Token::BYTES - 60);
        let hello = |rank| Hello {
            host: longest.clone(),
            version: String::new(),
            identity: String::new(),
            ..Hello::of_this_process(rank, u16::MAX)
        };
        let ranks: Vec<Hello> = (0..RANKS_OF_A_MESSAGE as u32).map(hello).collect();
        assert!(rank_table(&ranks).all(|message| message.frame().body.len() <= MAX_BODY));
    }

    #[test]
    fn an_end_has_a_code_and_a_short_reason() {
        assert_eq!(read_end(&end(7, "disk full")), (7, "disk full"));
        assert_eq!(read_end(&end(7, &"ü".repeat(2000))).1.chars().count(), 1000);
        assert_eq!(read_end(&Message::new(Kind::End)), (6, ""));
    }
}
