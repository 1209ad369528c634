//! Tests of a server and its clients: admission, ranks, and their ends.

use std::{net::SocketAddr, sync::mpsc::Receiver};

use super::*;
use crate::{
    control::listener,
    server::{RankEnd, Reservation, run_rank},
    socket::{Address, Deadline, ScopedIp, SocketOptions},
};

/// A test that waits for this time hangs.
const HANGS: Duration = Duration::from_secs(600);

/// A server on a thread.
struct Running {
    address: SocketAddr,
    token: Token,
    events: Receiver<ServerEvent>,
    end: std::thread::JoinHandle<()>,
}

/// Starts a server whose ranks are lines of shell, which clients choose by their first word.
fn server(lifetime: ServerLifetime) -> Running {
    let token = Token::random().unwrap();
    let listener = Listener::tcp([127, 0, 0, 1].into(), &SocketOptions::default(), token).unwrap();
    let address = ([127, 0, 0, 1], listener.port()).into();
    let start = |request: &RankRequest, _: ScopedIp| {
        let script = match &request.job[..] {
            b"lines" => "read line; echo \"$line\" >&2; echo two >&2; exit 3",
            b"killed" => "kill -9 $$",
            b"long" => "exec sleep 1000",
            other => {
                let name = String::from_utf8_lossy(other);
                return Err(Error::usage(format!("{name} is no benchmark")));
            }
        };
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Ok((command, b"one\n".to_vec()))
    };
    let (send, events) = mpsc::channel();
    let run = move || serve(listener, lifetime, Box::new(start), |event| drop(send.send(event))).unwrap();
    Running { address, token, events, end: std::thread::spawn(run) }
}

impl Running {
    fn reserve(&self) -> Result<Reservation> {
        Reservation::connect(&[self.address], &self.token)
    }

    fn run(&self, client: u64, word: &str) -> Result<(RankEnd, String)> {
        let request =
            RankRequest { session: Token::random().unwrap(), port: 7, on_host: (0, 1), job: word.into() };
        let lines = std::cell::RefCell::new(String::new());
        let end = run_rank(&[self.address], &self.token, client, &request, |line| {
            lines.borrow_mut().push_str(line);
        })?;
        Ok((end, lines.into_inner()))
    }
}

#[test]
fn a_client_starts_ranks_and_hears_their_ends() {
    let server = server(ServerLifetime { once: true, idle: None });
    let reserved = server.reserve().unwrap();
    assert_eq!(server.run(reserved.client, "lines").unwrap(), (RankEnd::Code(3), "onetwo".into()));
    assert_eq!(server.run(reserved.client, "killed").unwrap(), (RankEnd::Code(137), String::new()));
    let refused = server.run(reserved.client, "rm").unwrap_err().to_string();
    assert_eq!(refused, "rm is no benchmark");
    assert_eq!(server.events.recv().unwrap(), ServerEvent::Connected(hostname()));
    drop(reserved);
    assert_eq!(server.events.recv().unwrap(), ServerEvent::Left(hostname(), 3));
    server.end.join().unwrap();
}

#[test]
fn a_second_client_is_refused_until_the_first_has_left() {
    let server = server(ServerLifetime::default());
    let first = server.reserve().unwrap();
    let refused = server.reserve().err().unwrap().to_string();
    assert!(refused.contains("serves a run of") && refused.contains("--port"), "{refused}");
    let stranger = server.run(first.client + 1, "lines").unwrap_err().to_string();
    assert!(stranger.contains("serves a run of"), "{stranger}");
    let number = first.client;
    drop(first);
    while !matches!(server.events.recv().unwrap(), ServerEvent::Left(..)) {}
    assert!(server.run(number, "lines").unwrap_err().to_string().contains("any more"));
    assert!(server.reserve().unwrap().client > number);
}

#[test]
fn the_token_and_the_build_are_checked_first() {
    let server = server(ServerLifetime::default());
    let wrong = Reservation::connect(&[server.address], &Token::random().unwrap()).err().unwrap().to_string();
    assert!(wrong.contains("rejected the token"), "{wrong}");
    assert_eq!(server.events.recv().unwrap(), ServerEvent::Rejected(1));
    let other = Hello { version: "ombx 0.0.0 sockets 0".into(), ..Hello::of_this_process(0) };
    let to = Address::Tcp(server.address);
    let deadline = Deadline::after(HANGS);
    let stream =
        listener::connect(&to, &server.token, &codec::encode(&other), &SocketOptions::default(), deadline);
    let answer = Channel::over(stream.unwrap(), MAX_BODY).unwrap().reader.read().unwrap();
    let ServerMessage::Refused(End { why, .. }) = answer else { panic!("{answer:?}") };
    assert!(why.contains("another build of ombx (") && why.contains("0.0.0"), "{why}");
    assert!(matches!(server.events.recv().unwrap(), ServerEvent::Refused(..)));
    assert!(server.reserve().is_ok(), "the server is reserved by nobody");
}

#[test]
fn a_rank_ends_when_its_client_is_gone() {
    let server = server(ServerLifetime::default());
    let reserved = server.reserve().unwrap();
    let hello = codec::encode(&Hello::of_this_process(reserved.client));
    let deadline = || Deadline::after(HANGS);
    let to = Address::Tcp(server.address);
    let ask = || {
        let stream = listener::connect(&to, &server.token, &hello, &SocketOptions::default(), deadline());
        let mut channel = Channel::over(stream.unwrap(), MAX_BODY).unwrap();
        assert!(matches!(channel.reader.read().unwrap(), ServerMessage::Admitted { .. }));
        channel
    };
    let channel = ask();
    let request =
        RankRequest { session: Token::random().unwrap(), port: 7, on_host: (0, 1), job: b"long".into() };
    channel.writer.write(&ServerMessage::Run(request)).unwrap();
    channel.writer.close();
    drop(channel);
    // The next rank starts only after the first has ended.
    assert_eq!(server.run(reserved.client, "lines").unwrap().0, RankEnd::Code(3));
}

#[test]
fn a_server_without_clients_ends() {
    let server = server(ServerLifetime { once: false, idle: Some(Duration::from_millis(50)) });
    server.end.join().unwrap();
    assert!(server.events.try_recv().is_err());
}

#[test]
fn hosts_are_printable_and_ranks_possible() {
    let hello = Hello { client: 7, version: "v".into(), host: "n\n01".into() };
    let decoded = Hello::decode(&codec::encode(&hello)).unwrap();
    assert_eq!((decoded.client, &*decoded.version, &*decoded.host), (7, "v", "n01"));
    for bytes in [&b""[..], b"1", b"\xff\xff\xff"] {
        assert_eq!(Hello::decode(bytes), None, "{bytes:?}");
    }
    let session = Token::random().unwrap();
    let request = RankRequest { session, port: 7, on_host: (1, 2), job: b"run".into() };
    let sent = codec::encode(&ServerMessage::Run(request.clone()));
    let Some(ServerMessage::Run(decoded)) = codec::decode(&sent) else { panic!() };
    assert!(decoded.session.is(session.bytes()) && decoded.is_possible());
    assert_eq!((decoded.port, decoded.job), (7, request.job.clone()));
    for on_host in [(2, 2), (0, 3), (0, 0)] {
        assert!(!RankRequest { on_host, ..request.clone() }.is_possible());
    }
}
