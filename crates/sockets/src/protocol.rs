//! What ranks and their coordinator say to each other, in frames.

use std::net::{IpAddr, Ipv6Addr};

use ombx_core::{
    error::{Error, Result},
    system::environment,
};

use crate::{frame::MOST, host};

/// To every rank, once all are there: the [`Roster`].
pub(crate) const ROSTER: u8 = 2;
/// From rank to rank, through the coordinator: the other rank, 1 if a part follows and else 0, a part of the message.
pub(crate) const MAIL: u8 = 3;
/// Everybody ends now: an exit code and a sentence, which may be empty if it has been told already.
pub(crate) const END: u8 = 4;
/// From a rank that has done its work.
pub(crate) const BYE: u8 = 5;

/// Bytes of mail before the message.
pub(crate) const MAIL_HEAD: usize = 5;
/// The longest part of a message in one frame.
pub(crate) const PART: usize = MOST - MAIL_HEAD;

/// What a rank says of itself when it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) rank: u32,
    /// Builds that differ may speak differently.
    pub(crate) version: String,
    pub(crate) host: String,
    /// See [`host::identity`].
    pub(crate) identity: String,
    /// By which its host is reached from others.
    pub(crate) ipv6: Option<Ipv6Addr>,
    /// As the coordinator sees it; a loopback address where it is on the coordinator's host.
    pub(crate) seen: Option<IpAddr>,
}

impl Card {
    pub(crate) fn mine(rank: u32) -> Card {
        Card {
            rank,
            version: version(),
            host: environment::hostname(),
            identity: host::identity(),
            ipv6: host::global_ipv6(),
            seen: None,
        }
    }

    pub(crate) fn encode(&self) -> String {
        let Card { rank, version, host, identity, ipv6, seen } = self;
        let (ipv6, seen) = (ipv6.map(|ip| ip.to_string()), seen.map(|ip| ip.to_string()));
        let [ipv6, seen] = [ipv6, seen].map(Option::unwrap_or_default);
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        format!("{rank}\t{}\t{}\t{}\t{ipv6}\t{seen}", clean(version), clean(host), clean(identity))
    }

    pub(crate) fn decode(text: &str) -> Option<Card> {
        let fields: Vec<&str> = text.split('\t').collect();
        let [rank, version, host, identity, ipv6, seen] = fields.as_slice() else { return None };
        Some(Card {
            rank: rank.parse().ok()?,
            version: (*version).into(),
            host: (*host).into(),
            identity: (*identity).into(),
            ipv6: ipv6.parse().ok(),
            seen: seen.parse().ok(),
        })
    }
}

/// What must be equal for ranks to understand each other.
pub(crate) fn version() -> String {
    format!("ombx {} sockets 1", env!("CARGO_PKG_VERSION"))
}

/// All ranks, by number.
pub(crate) fn encode_roster(cards: &[Card]) -> Vec<u8> {
    cards.iter().map(Card::encode).collect::<Vec<_>>().join("\n").into_bytes()
}

/// All ranks, by number.
pub(crate) fn decode_roster(body: &[u8]) -> Result<Vec<Card>> {
    let bad = || Error::fabric("the coordinator sent a list of ranks that cannot be read");
    let text = std::str::from_utf8(body).map_err(|_| bad())?;
    let cards: Option<Vec<Card>> = text.split('\n').map(Card::decode).collect();
    let cards = cards.ok_or_else(bad)?;
    let in_order = cards.iter().zip(0u32..).all(|(card, rank)| card.rank == rank);
    if in_order { Ok(cards) } else { Err(bad()) }
}

/// A part of a message, for or from `other`.
pub(crate) fn encode_mail(other: u32, more: bool, part: &[u8]) -> Vec<u8> {
    [&other.to_le_bytes()[..], &[u8::from(more)], part].concat()
}

/// The other rank, whether a part follows, and the part.
pub(crate) fn decode_mail(body: &[u8]) -> Option<(u32, bool, &[u8])> {
    let (other, rest) = body.split_first_chunk::<4>()?;
    let (more, part) = rest.split_first()?;
    (*more <= 1).then_some((u32::from_le_bytes(*other), *more == 1, part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "\\PC{0,60}") {
            let _ = (decode_roster(&bytes), decode_mail(&bytes), Card::decode(&text));
        }

        #[test]
        fn mail_survives(other: u32, more: bool, part in prop::collection::vec(any::<u8>(), 0..50)) {
            let body = encode_mail(other, more, &part);
            prop_assert_eq!(decode_mail(&body), Some((other, more, &part[..])));
        }
    }

    #[test]
    fn a_roster_survives() {
        let cards: Vec<Card> = (0..3).map(Card::mine).collect();
        assert_eq!(decode_roster(&encode_roster(&cards)).unwrap(), cards);
        assert!(decode_roster(&encode_roster(&cards[1..])).is_err());
    }
}
