//! Guests, strangers and crowds at a door.

use super::*;
use std::{io::Write, net::TcpStream, thread};

const SOON: Duration = Duration::from_secs(20);

fn deadline() -> Deadline {
    Deadline::after(SOON)
}

fn tcp() -> (Door, Address, Token) {
    let token = Token::random().unwrap();
    let door = Door::tcp(IpAddr::from([127, 0, 0, 1]), &Options::default(), token).unwrap();
    let address = door.address().unwrap();
    (door, address, token)
}

#[test]
fn a_guest_is_admitted_by_tcp_and_unix() {
    let token = Token::random().unwrap();
    let options = Options::default();
    let doors = [
        Door::tcp(IpAddr::from([127, 0, 0, 1]), &options, token).unwrap(),
        Door::unix(&options, token).unwrap(),
    ];
    for mut door in doors {
        let address = door.address().unwrap();
        let (token, options) = (token, options.clone());
        let guest =
            thread::spawn(move || enter(&address, &token, b"it is me", &options, deadline()).unwrap());
        let Guest { mut stream, said } = door.admit(deadline()).unwrap();
        assert_eq!(said, b"it is me");
        guest.join().unwrap().write_all(b"hello").unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!((&heard, door.refused()), (b"hello", 0));
    }
}

#[test]
fn strangers_keep_nobody_out() {
    let (mut door, address, token) = tcp();
    let Address::Tcp(at) = address.clone() else { panic!() };
    let wrong = Token::random().unwrap();
    let silent = TcpStream::connect(at).unwrap();
    let say = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let hello = |token: &Token| Frame::new(HELLO, *token.bytes()).encode().unwrap();
    let strangers = [
        say(&hello(&wrong)),
        say(&[0xff; 64]),
        say(b"GET / HTTP/1.1\r\n\r\n"),
        say(&[0, 0, 0, 0]),
        say(&[&hello(&token)[..], b"more"].concat()),
        say(&Frame::new(7, *token.bytes()).encode().unwrap()),
        say(&Frame::new(HELLO, &token.bytes()[..4]).encode().unwrap()),
    ];
    drop(say(&[1]));
    let half = say(&hello(&token)[..9]);
    let friend = thread::spawn(move || enter(&address, &token, b"", &Options::default(), deadline()));
    door.admit(deadline()).unwrap();
    assert!(friend.join().unwrap().is_ok());
    assert_eq!(door.refused(), strangers.len() as u64 + 1);
    for mut stranger in strangers {
        stranger.set_read_timeout(Some(SOON)).unwrap();
        assert!(matches!(stranger.read(&mut [0; 8]), Ok(0) | Err(_)), "a stranger was answered");
    }
    assert!(matches!(door.serve(SOON).unwrap(), Some(Knock::Strangers(_))), "silence is no token");
    drop((silent, half));
}

#[test]
fn a_crowd_of_silent_strangers_keeps_nobody_out() {
    let (mut door, address, token) = tcp();
    let Address::Tcp(at) = address.clone() else { panic!() };
    let crowd: Vec<TcpStream> = (0..3 * MOST_WAITING).map(|_| TcpStream::connect(at).unwrap()).collect();
    let friend = thread::spawn(move || enter(&address, &token, b"", &Options::default(), deadline()));
    door.admit(deadline()).unwrap();
    assert!(friend.join().unwrap().is_ok() && door.refused() >= 2 * MOST_WAITING as u64);
    drop(crowd);
}

#[test]
fn nobody_comes() {
    let (mut door, ..) = tcp();
    let error = door.admit(Deadline::after(Duration::from_millis(20))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}
