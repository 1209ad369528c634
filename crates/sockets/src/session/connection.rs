//! A rank's connections: to its coordinator, and to other ranks, with which it exchanges messages.

use std::{
    cell::RefCell,
    io,
    net::{Ipv6Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use ombx_core::{
    codec,
    error::{Error, Result},
};
use ombx_host::environment;
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use crate::{
    control::{Channel, FrameError, MAX_BODY, MessageReader, MessageWriter, Token, listener},
    session::peers::{IdleTask, Inbox, OnEnd, PeerListener, Peers},
    socket::{self, Address, Deadline, ScopedIp, SocketOptions, Stream},
};

/// All ranks join within this time, and this much more for each rank of the host.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
const JOIN_TIME_OF_RANK: Duration = Duration::from_millis(200);
/// One address of the coordinator answers within this time, else the next is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the time in which all ranks of a session join, of which so many run on this host.
pub fn join_timeout(ranks_on_host: u32) -> Duration {
    JOIN_TIMEOUT + JOIN_TIME_OF_RANK * ranks_on_host
}

/// A rank's connections to its coordinator and to other ranks.
pub(super) struct Connection {
    writer: MessageWriter,
    inbox: Arc<Inbox>,
    peers: RefCell<Peers>,
    /// Every rank of the session, in rank order.
    pub(super) ranks: Vec<Hello>,
    /// The address at which this rank reached the coordinator.
    pub(super) coordinator: Option<ScopedIp>,
    /// How interfaces of addresses are numbered that the coordinator sees.
    pub(super) links: Links,
    idle_task: RefCell<Option<Rc<dyn IdleTask>>>,
    /// Ends with this connection.
    _peer_listener: PeerListener,
}

impl Connection {
    /// Joins a session as `rank` and waits until all ranks have joined, for at most `limit`.
    ///
    /// A thread then reads the connection. It calls `on_end` when the session ends before this rank has left it.
    pub(super) fn join(
        addresses: &[SocketAddr],
        token: &Token,
        rank: u32,
        limit: Duration,
        on_end: OnEnd,
    ) -> Result<Connection> {
        let failed = |e: FrameError| Error::fabric(format!("rank {rank} cannot join the session: {e}"));
        let io = |e: io::Error| failed(FrameError::Io(e));
        let inbox = Arc::new(Inbox::default());
        let peer_listener = PeerListener::open(addresses, *token, &inbox)?;
        let hello = Hello::of_this_process(rank, peer_listener.port());
        let stream = connect(addresses, token, &hello, limit)?;
        let coordinator = stream.peer().map(ScopedIp::from);
        let socket = stream.try_clone().map_err(io)?;
        let Channel { mut reader, writer } = Channel::over(stream, MAX_BODY).map_err(io)?;
        let ranks = read_ranks(&mut reader, &inbox, on_end, failed)?;
        set_keep_alive(&socket).map_err(io)?;
        let links = Links::new(ranks.get(rank as usize), coordinator);
        let peers = RefCell::new(Peers::new(&hello, *token, links));
        let filled = Arc::clone(&inbox);
        listener::spawn_thread("inbox", move || filled.read_coordinator(reader, on_end))?;
        let idle_task = RefCell::new(None);
        Ok(Connection {
            writer,
            inbox,
            peers,
            ranks,
            coordinator,
            links,
            idle_task,
            _peer_listener: peer_listener,
        })
    }

    /// Sends a message to a rank, in parts if it is longer than a frame. It goes there directly, or through the coordinator if
    /// that is impossible.
    pub(super) fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        let hello = &self.ranks[to as usize];
        let mut peers = self.peers.borrow_mut();
        let number = peers.next_number(to);
        let (writer, other, gone) = match peers.connection(hello) {
            Some(writer) => {
                (writer, peers.own_rank(), format!("the connection to rank {to} on {}", hello.host))
            }
            None => (self.writer.clone(), to, "the coordinator of the session".into()),
        };
        let write = |more, part: &[u8]| {
            let written =
                writer.write(&Message::Data(MessagePart { other, more, number, bytes: part.to_vec() }));
            written.map_err(|e| Error::fabric(format!("{gone} is gone: {e}")))
        };
        if message.is_empty() {
            return write(false, &[]);
        }
        let last = (message.len() - 1) / MAX_PART;
        message.chunks(MAX_PART).enumerate().try_for_each(|(at, part)| write(at < last, part))
    }

    /// Waits for the next message of a rank that is one of `wanted`; repeats the idle task meanwhile.
    pub(super) fn receive(&self, from: u32, wanted: fn(&[u8]) -> bool) -> Vec<u8> {
        let idle_task = self.idle_task.borrow().clone();
        self.inbox.receive(from, wanted, idle_task.as_deref())
    }

    /// Returns the next message of a rank that is one of `wanted`, if it has arrived.
    pub(super) fn take(&self, from: u32, wanted: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        self.inbox.take(from, wanted)
    }

    /// Replaces the idle task.
    pub(super) fn set_idle_task(&self, task: Option<Rc<dyn IdleTask>>) {
        *self.idle_task.borrow_mut() = task;
    }

    /// Leaves the session. The end of the session does not concern this rank any more.
    pub(super) fn leave(&self) {
        self.inbox.leave();
        // Fails if the coordinator has ended, which is no failure from now on.
        let _ = self.writer.write(&Message::Leave);
    }

    /// Asks the coordinator to end every rank.
    pub(super) fn end_all(&self, code: u8) {
        let _ = self.writer.write(&Message::End(End::new(code, "")));
    }
}

/// Connects to the first address of the coordinator that answers.
fn connect(addresses: &[SocketAddr], token: &Token, hello: &Hello, limit: Duration) -> Result<Stream> {
    let mut failure = Error::fabric("it has no address");
    let hello = codec::encode(hello);
    for address in addresses {
        let (to, deadline) = (Address::Tcp(*address), Deadline::after(CONNECT_TIMEOUT));
        match listener::connect(&to, token, &hello, &SocketOptions::default(), deadline) {
            Ok(stream) => {
                let limited = stream.set_timeout(Some(limit));
                limited.map_err(|e| Error::fabric(format!("cannot set the timeout of a connection: {e}")))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure.within("the coordinator of the session"))
}

/// Waits for the rank table. Messages of ranks that know it already go to the inbox.
fn read_ranks(
    reader: &mut MessageReader,
    inbox: &Inbox,
    on_end: OnEnd,
    failed: impl Fn(FrameError) -> Error,
) -> Result<Vec<Hello>> {
    let mut ranks = Vec::new();
    loop {
        match reader.read().map_err(&failed)? {
            Message::RankTable(table) => {
                if table.add_to(&mut ranks)? {
                    return Ok(ranks);
                }
            }
            Message::End(End { code, why }) => {
                on_end(code, &why);
                return Err(Error::fabric(why));
            }
            Message::Data(part) => inbox.put(part),
            other => {
                return Err(Error::fabric(format!(
                    "the coordinator sent an unexpected message ({})",
                    other.name()
                )));
            }
        }
    }
}

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
    /// See [`socket::identity`].
    pub(crate) identity: String,
    /// A global address of the rank's host.
    pub(crate) ipv6: Option<Ipv6Addr>,
    /// Port on which the rank listens for other ranks; 0 if it does not.
    pub(crate) port: u16,
    /// The rank's address as the coordinator sees it; loopback if it is on the coordinator's host.
    pub(crate) seen: Option<ScopedIp>,
}

impl Hello {
    pub(crate) fn of_this_process(rank: u32, port: u16) -> Hello {
        Hello {
            rank,
            version: version(),
            host: environment::hostname(),
            identity: socket::identity(),
            ipv6: socket::global_ipv6(),
            port,
            seen: None,
        }
    }
}

/// Where link-local addresses of other ranks are, seen from this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// This rank is on the coordinator's host: interfaces have the numbers that the coordinator sees.
    OfCoordinator,
    /// On the link by which this rank reaches the coordinator, which is the only link that both are known to have.
    TowardsCoordinator(ScopedIp),
    /// Unknown: this rank does not reach the coordinator by a link-local address.
    Unknown,
}

impl Links {
    /// Returns the links of a rank from what the coordinator says of it, and from the address at which it reaches the coordinator.
    fn new(own: Option<&Hello>, coordinator: Option<ScopedIp>) -> Links {
        match coordinator {
            _ if own.and_then(|own| own.seen).is_some_and(|seen| seen.ip().is_loopback()) => {
                Links::OfCoordinator
            }
            Some(address) if address.has_interface() => Links::TowardsCoordinator(address),
            _ => Links::Unknown,
        }
    }

    /// Returns the address of a rank on another host, as this rank reaches it; `None` if the rank has none for other hosts, or if its
    /// link is unknown.
    pub(crate) fn address_of(self, rank: &Hello) -> Option<ScopedIp> {
        let seen = rank.seen.filter(|seen| !seen.ip().is_loopback())?;
        match self {
            Links::TowardsCoordinator(coordinator) if seen.has_interface() => {
                Some(seen.on_link_of(coordinator))
            }
            Links::Unknown if seen.has_interface() => None,
            _ => Some(seen),
        }
    }
}

/// Returns the build of ombx, which must be the same on all ranks of a session.
pub(crate) fn version() -> String {
    format!("ombx {} sockets 8", env!("CARGO_PKG_VERSION"))
}

/// Message between a rank and its coordinator, or between two ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Coordinator to every rank, once all have joined.
    RankTable(RankTable),
    /// Rank to rank, perhaps through the coordinator.
    Data(MessagePart),
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
pub(crate) struct MessagePart {
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
mod protocol_tests {
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
    fn link_local_addresses_are_on_the_link_of_the_coordinator() {
        let ip = |text: &str| text.parse::<ScopedIp>().unwrap();
        let seen = |text: &str| Hello { seen: Some(ip(text)), ..Hello::of_this_process(1, 7) };
        let address = |links: Links, other: &str| links.address_of(&seen(other)).map(|ip| ip.to_string());
        let here = Links::new(Some(&seen("127.0.0.1")), Some(ip("::1")));
        assert_eq!(here, Links::OfCoordinator);
        assert_eq!(address(here, "fe80::2%3").as_deref(), Some("fe80::2%3"));
        let elsewhere = Links::new(Some(&seen("fe80::3%3")), Some(ip("fe80::1%8")));
        assert_eq!(address(elsewhere, "fe80::2%3").as_deref(), Some("fe80::2%8"));
        let routed = Links::new(Some(&seen("fd00::3")), Some(ip("fd00::1")));
        assert_eq!(address(routed, "fe80::2%3"), None);
        for links in [here, elsewhere, routed] {
            assert_eq!(address(links, "10.0.0.2").as_deref(), Some("10.0.0.2"));
            assert_eq!(address(links, "::1"), None, "the coordinator's host has no address here");
        }
    }

    #[test]
    fn a_part_of_a_message_fits_into_a_frame() {
        let part = MessagePart { other: u32::MAX, more: true, number: u64::MAX, bytes: vec![0; MAX_PART] };
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
