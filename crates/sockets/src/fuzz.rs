//! What reads what processes of a session say to each other, called with any bytes. The programs of `fuzz/` call these for
//! hours, the tests below for a moment.

use std::{io::Write, os::unix::net::UnixStream, time::Duration};

pub use crate::pipeline::fuzz as pipeline;
use crate::{
    coordinator::{decode_end, end},
    door::{Door, Guest, HELLO, Knock, MOST_SAID},
    frame::{Frame, MOST},
    options::Options,
    protocol::{Card, decode_mail, decode_roster, encode_mail, encode_roster},
    stream::{Address, unix_address},
    token::Token,
};

/// The token of the seed that is let in.
const TOKEN: [u8; Token::BYTES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Frames, what is in them, and the token as text: what is read survives being written again.
pub fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = Frame::parse(rest, MOST) {
        assert_eq!(frame.encode().unwrap(), rest[..used]);
        assert_eq!(Frame::read(&mut &rest[..used], MOST).unwrap(), frame);
        body(&frame.body);
        rest = &rest[used..];
    }
    assert!(Frame::read(&mut &rest[..], MOST).is_err());
    let text = String::from_utf8_lossy(bytes);
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.to_string(), text.to_ascii_lowercase());
    }
}

fn body(body: &[u8]) {
    if let Some((rank, more, part)) = decode_mail(body) {
        assert_eq!(encode_mail(rank, more, part), body);
    }
    if let Ok(cards) = decode_roster(body) {
        assert_eq!(decode_roster(&encode_roster(&cards)).unwrap(), cards);
    }
    if let Some(card) = std::str::from_utf8(body).ok().and_then(Card::decode) {
        assert!(card.encode().split('\t').count() == 6);
    }
    let (code, why) = decode_end(body);
    let again = end(code, &why);
    assert!(again.body.len() <= 1 + 4 * 1000 && decode_end(&again.body).0 == code);
}

/// A door: only who shows the token, and all of it in the first frame, gets in; everyone else is turned away.
pub fn door(bytes: &[u8]) {
    thread_local! {
        static DOOR: std::cell::RefCell<Door> = Door::unix(&Options::default(), TOKEN.into()).unwrap().into();
    }
    DOOR.with_borrow_mut(|door| {
        let Ok(Address::Unix(name)) = door.address() else { return };
        let mut guest = UnixStream::connect_addr(&unix_address(&name).unwrap()).unwrap();
        // Somebody who is turned away early cannot say the rest.
        let _ = guest.write_all(bytes);
        drop(guest);
        let admitted = match door.serve(Duration::from_secs(10)).unwrap() {
            Some(Knock::Guest(Guest { said, .. })) => Some(said),
            Some(Knock::Strangers(_)) => None,
            None => panic!("neither let in nor turned away"),
        };
        let first = match Frame::parse(bytes, MOST_SAID) {
            Ok(Some((Frame { kind: HELLO, body }, used))) if body.starts_with(&TOKEN) => Some((body, used)),
            _ => None,
        };
        match (admitted, first) {
            (Some(said), Some((body, _))) => assert_eq!(said, body[Token::BYTES..]),
            (Some(_), None) => panic!("a stranger was let in"),
            (None, Some((_, used))) => assert!(used < bytes.len(), "a guest was turned away"),
            (None, None) => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::testkit::hostile;

    #[test]
    fn any_bytes_are_frames_or_refused() {
        hostile("frames", 20_000, frames);
    }

    #[test]
    fn a_door_lets_in_who_shows_the_token_and_nobody_else() {
        hostile("door", 3000, door);
    }

    #[test]
    fn any_bytes_are_notes_or_refused() {
        hostile("pipeline", 20_000, pipeline);
    }
}
