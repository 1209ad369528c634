//! Readers of bytes from other processes, called with any bytes. The programs in `fuzz/` and the tests below call them.

use std::{
    io::Write,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::Duration,
};

use ombx_core::codec;

pub use crate::pipeline::fuzz as pipeline;
use crate::{
    control::{Attempt, Listener, MAX_BODY, Peer, Token, channel::Frame, listener::MAX_HELLO},
    session::connection::{Hello, Message, RankTable},
    socket::{Address, SocketOptions},
};

/// The token of the seed that is admitted.
const TOKEN: [u8; Token::BYTES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Reads frames, the messages in them, and the token as text. Checks that each survives encoding.
pub fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, used))) = Frame::parse(rest, MAX_BODY) {
        assert_eq!(frame.encode().unwrap(), rest[..used]);
        assert_eq!(Frame::read(&mut &rest[..used], MAX_BODY).unwrap(), frame);
        if let Some(hello) = codec::decode::<Hello>(&frame.0) {
            assert_eq!(codec::decode(&codec::encode(&hello)), Some(hello));
        }
        if let Some(message) = codec::decode::<Message>(&frame.0) {
            session_message(message);
        }
        rest = &rest[used..];
    }
    assert!(Frame::read(&mut &rest[..], MAX_BODY).is_err());
    let text = String::from_utf8_lossy(bytes);
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.to_string(), text.to_ascii_lowercase());
    }
}

fn session_message(message: Message) {
    assert_eq!(codec::decode(&codec::encode(&message)).as_ref(), Some(&message));
    let Message::RankTable(table) = message else { return };
    let (mut ranks, mut again) = (Vec::new(), Vec::new());
    if let Ok(true) = table.add_to(&mut ranks) {
        for message in RankTable::messages(&ranks) {
            let Message::RankTable(table) = message else { panic!("no rank table") };
            table.add_to(&mut again).unwrap();
        }
        assert_eq!(again, ranks);
    }
}

/// Connects to a listener and sends the bytes. Checks that the listener admits the peer if and only if they are the token in a
/// first frame, and nothing follows it.
pub fn listener(bytes: &[u8]) {
    thread_local! {
        static LISTENER: std::cell::RefCell<Listener> =
            Listener::unix(&SocketOptions::default(), TOKEN.into()).unwrap().into();
    }
    LISTENER.with_borrow_mut(|listener| {
        let Address::Unix(name) = listener.address() else { return };
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let mut peer = UnixStream::connect_addr(&address).unwrap();
        // Fails if the listener rejects the connection before all bytes are written.
        let _ = peer.write_all(bytes);
        drop(peer);
        let admitted = match listener.wait(Duration::from_secs(10)).unwrap() {
            Some(Attempt::Admitted(Peer { hello, .. })) => Some(hello),
            Some(Attempt::Rejected(_)) => None,
            None => panic!("the connection was neither admitted nor rejected"),
        };
        let first = match Frame::parse(bytes, MAX_HELLO) {
            Ok(Some((Frame(body), used))) if body.starts_with(&TOKEN) => Some((body, used)),
            _ => None,
        };
        match (admitted, first) {
            (Some(hello), Some((body, _))) => assert_eq!(hello, body[Token::BYTES..]),
            (Some(_), None) => panic!("a connection without the token was admitted"),
            (None, Some((_, used))) => assert!(used < bytes.len(), "a peer with the token was rejected"),
            (None, None) => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_testkit::hostile;

    #[test]
    fn any_bytes_are_frames_or_rejected() {
        hostile("frames", 20_000, frames);
    }

    #[test]
    fn a_listener_admits_only_peers_with_the_token() {
        hostile("listener", 3000, listener);
    }

    #[test]
    fn any_bytes_are_pipeline_messages_or_rejected() {
        hostile("pipeline", 20_000, pipeline);
    }
}
