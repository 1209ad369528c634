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
use serde::{Deserialize, Serialize};

use crate::{
    control::MAX_BODY,
    socket::{Stream, host},
};

/// Maximum bytes of one part of a message: what a frame holds beside the counts, the other rank, the flag and the number.
pub(super) const MAX_PART: usize = MAX_BODY - 32;
/// Number of ranks in one message of the rank table. With the longest hello they fit into a frame.
const RANKS_OF_A_MESSAGE: usize = 128;
/// A rank that takes nothing from its connection for this time is lost.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// What a rank says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Build of the rank; all ranks of a session must have the same.
    pub(crate) version: String,
    pub(crate) rank: u32,
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
}

/// Returns the build of ombx, which must be the same on all ranks of a session.
pub(crate) fn version() -> String {
    format!("ombx {} sockets 4", env!("CARGO_PKG_VERSION"))
}

/// Message between a rank and its coordinator, or between two ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Coordinator to every rank, once all have joined.
    RankTable(RankTable),
    /// Rank to rank, perhaps through the coordinator.
    Data(Part),
    /// Coordinator to every rank, or a rank to the coordinator: the session ends.
    End(End),
    /// Rank to coordinator: the rank has done its work.
    Leave,
    /// Rank to rank: messages may follow.
    Admitted,
}

impl Message {
    /// Returns a word for error messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Message::RankTable(_) => "a rank table",
            Message::Data(_) => "data",
            Message::End(_) => "an end",
            Message::Leave => "a leave",
            Message::Admitted => "an admission",
        }
    }
}

/// Some ranks of a session, in rank order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankTable {
    /// Number of all ranks.
    all: u32,
    ranks: Vec<Hello>,
}

impl RankTable {
    /// Returns the messages that describe all ranks, for every rank.
    pub(crate) fn messages(ranks: &[Hello]) -> impl Iterator<Item = Message> {
        let part = |part: &[Hello]| RankTable { all: ranks.len() as u32, ranks: part.to_vec() };
        ranks.chunks(RANKS_OF_A_MESSAGE).map(part).map(Message::RankTable)
    }

    /// Adds the ranks to those of earlier messages. Returns whether the table is complete.
    pub(crate) fn add_to(self, ranks: &mut Vec<Hello>) -> Result<bool> {
        let invalid = || Error::fabric("the coordinator sent an invalid rank table");
        if self.ranks.is_empty() {
            return Err(invalid());
        }
        for hello in self.ranks {
            if hello.rank as usize != ranks.len() {
                return Err(invalid());
            }
            ranks.push(hello);
        }
        let all = self.all as usize;
        if ranks.len() > all { Err(invalid()) } else { Ok(ranks.len() == all) }
    }
}

/// One part of a message between ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Rank that the message is from, or for.
    pub(crate) other: u32,
    /// Whether another part follows.
    pub(crate) more: bool,
    /// Number of the message among those from one rank to another. Messages may arrive by different connections.
    pub(crate) number: u64,
    #[serde(with = "serde_bytes")]
    pub(crate) bytes: Vec<u8>,
}

/// End of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Exit code.
    pub(crate) code: u8,
    /// The reason; empty if it was reported.
    pub(crate) why: String,
}

impl End {
    /// Returns an end. `why` is cut after 1000 characters.
    pub(crate) fn new(code: u8, why: &str) -> End {
        End { code, why: why.chars().take(1000).collect() }
    }
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
    use ombx_core::codec;

    use super::*;
    use crate::control::{Token, listener::MAX_HELLO};

    fn tables(ranks: &[Hello]) -> Vec<RankTable> {
        let table = |message| match message {
            Message::RankTable(table) => table,
            other => panic!("{other:?}"),
        };
        RankTable::messages(ranks).map(table).collect()
    }

    #[test]
    fn a_rank_table_is_read_as_it_was_sent() {
        for size in [1, 3, 128, 300] {
            let ranks: Vec<Hello> = (0..size).map(|rank| Hello::of_this_process(rank, 7)).collect();
            let (mut known, messages) = (Vec::new(), tables(&ranks));
            let complete: Vec<bool> =
                messages.iter().map(|table| table.clone().add_to(&mut known).unwrap()).collect();
            assert_eq!(complete.iter().filter(|complete| **complete).count(), 1, "{size}");
            assert!(complete.ends_with(&[true]) && known == ranks);
            assert!(messages[0].clone().add_to(&mut known).is_err(), "twice");
        }
        let ranks: Vec<Hello> = (1..3).map(|rank| Hello::of_this_process(rank, 7)).collect();
        assert!(tables(&ranks).remove(0).add_to(&mut Vec::new()).is_err(), "the first is missing");
        assert!(RankTable { all: 0, ranks: Vec::new() }.add_to(&mut Vec::new()).is_err());
    }

    #[test]
    fn a_part_of_a_message_fits_into_a_frame() {
        let part = Part { other: u32::MAX, more: true, number: u64::MAX, bytes: vec![0; MAX_PART] };
        let bytes = codec::encode(&Message::Data(part.clone()));
        assert!(bytes.len() <= MAX_BODY && bytes.len() > MAX_PART);
        assert_eq!(codec::decode(&bytes), Some(Message::Data(part)));
        assert!((0..40).all(|cut| codec::decode::<Message>(&bytes[..cut]).is_none()));
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
        assert!(RankTable::messages(&ranks).all(|message| codec::encode(&message).len() <= MAX_BODY));
    }

    #[test]
    fn the_reason_of_an_end_is_short() {
        assert_eq!(End::new(7, &"ü".repeat(2000)).why.chars().count(), 1000);
    }
}
