//! Peers, hostile connections and many silent connections.

use super::*;
use std::{io::Write, net::TcpStream, thread};

/// A test that waits for this time hangs.
const HANGS: Duration = Duration::from_secs(600);

fn deadline() -> Deadline {
    Deadline::after(HANGS)
}

fn tcp() -> (Listener, Address, Token) {
    let token = Token::random().unwrap();
    let listener = Listener::tcp(IpAddr::from([127, 0, 0, 1]), &SocketOptions::default(), token).unwrap();
    let address = listener.address().clone();
    (listener, address, token)
}

#[test]
fn a_peer_is_admitted_over_tcp_and_unix() {
    let token = Token::random().unwrap();
    let options = SocketOptions::default();
    let listeners = [
        Listener::tcp(IpAddr::from([127, 0, 0, 1]), &options, token).unwrap(),
        Listener::unix(&options, token).unwrap(),
    ];
    for mut listener in listeners {
        let address = listener.address().clone();
        let (token, options) = (token, options.clone());
        let peer =
            thread::spawn(move || connect(&address, &token, b"it is me", &options, deadline()).unwrap());
        let Peer { stream, hello } = listener.accept(deadline()).unwrap();
        assert_eq!(hello, b"it is me");
        (&peer.join().unwrap()).write_all(b"hello").unwrap();
        let mut received = [0; 5];
        (&stream).read_exact(&mut received).unwrap();
        assert_eq!((&received, listener.rejected()), (b"hello", 0));
    }
}

#[test]
fn hostile_connections_block_no_peer() {
    let (mut listener, address, token) = tcp();
    listener.hello_timeout = HANGS;
    let Address::Tcp(at) = address.clone() else { panic!() };
    let wrong = Token::random().unwrap();
    let silent = TcpStream::connect(at).unwrap();
    let send = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let hello = |token: &Token| Frame(token.bytes().to_vec()).encode().unwrap();
    let hostile = [
        send(&hello(&wrong)),
        send(&[0xff; 64]),
        send(b"GET / HTTP/1.1\r\n\r\n"),
        send(&[0, 0, 0, 0]),
        send(&[&hello(&token)[..], b"more"].concat()),
        send(&Frame(token.bytes()[..4].to_vec()).encode().unwrap()),
    ];
    drop(send(&[1]));
    let half = send(&hello(&token)[..9]);
    let peer = thread::spawn(move || connect(&address, &token, b"", &SocketOptions::default(), deadline()));
    listener.accept(deadline()).unwrap();
    assert!(peer.join().unwrap().is_ok());
    assert_eq!(listener.rejected(), hostile.len() as u64 + 1);
    for mut stream in hostile {
        stream.set_read_timeout(Some(HANGS)).unwrap();
        assert!(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)), "a hostile connection was answered");
    }
    listener.hello_timeout = Duration::ZERO;
    let late = listener.wait(HANGS).unwrap();
    assert!(matches!(late, Some(Attempt::Rejected(_))), "a silent connection was not rejected: {late:?}");
    drop((silent, half));
}

#[test]
fn many_silent_connections_block_no_peer() {
    let (mut listener, address, token) = tcp();
    let Address::Tcp(at) = address.clone() else { panic!() };
    let silent: Vec<TcpStream> = (0..3 * MAX_PENDING).map(|_| TcpStream::connect(at).unwrap()).collect();
    let peer = thread::spawn(move || connect(&address, &token, b"", &SocketOptions::default(), deadline()));
    listener.accept(deadline()).unwrap();
    assert!(peer.join().unwrap().is_ok() && listener.rejected() >= 2 * MAX_PENDING as u64);
    drop(silent);
}

#[test]
fn accepting_times_out() {
    let (mut listener, ..) = tcp();
    let error = listener.accept(Deadline::after(Duration::from_millis(20))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}
