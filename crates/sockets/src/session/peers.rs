//! Direct connections between ranks. Each carries messages in one direction.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use ombx_core::{codec, error::Result};

use super::{
    coordinator::{Reach, listen},
    inbox::Inbox,
    protocol::{Hello, Message, set_keep_alive},
};
use crate::{
    control::{Attempt, Channel, Listener, MAX_BODY, MessageWriter, Peer, Token, listener, thread},
    socket::{Address, Deadline, SocketOptions},
};

/// Maximum number of open connections to other ranks; one more closes the one that was used least recently.
const MAX_OPEN: usize = 128;
/// A rank admits another within this time, else the coordinator relays. Ranks of one host share its CPUs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT_HERE: Duration = Duration::from_secs(30);
/// Interval at which a listener that ran out of file descriptors accepts again.
const RETRY: Duration = Duration::from_secs(1);

/// Listener of a rank for messages of other ranks. Dropping it ends its thread.
pub(super) struct Entrance {
    inbox: Arc<Inbox>,
    port: u16,
}

impl Entrance {
    /// Listens on a thread: on loopback if the coordinator's first address is there, else on every address.
    pub(super) fn open(coordinator: &[SocketAddr], token: Token, inbox: &Arc<Inbox>) -> Result<Entrance> {
        let here = coordinator.first().is_some_and(|address| address.ip().is_loopback());
        let listener = listen(token, if here { Reach::ThisHost } else { Reach::Everywhere })?;
        let (port, inbox) = (listener.port(), Arc::clone(inbox));
        let filled = Arc::clone(&inbox);
        thread::spawn("peers", move || admit(listener, &filled))?;
        Ok(Entrance { inbox, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.inbox.close();
        // A connection without the token wakes the thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Admits other ranks and reads their messages, each on a thread, until the inbox is closed.
fn admit(mut listener: Listener, inbox: &Arc<Inbox>) {
    while !inbox.is_closed() {
        match listener.wait(Duration::from_secs(3600)) {
            Ok(Some(Attempt::Admitted(Peer { stream, hello }))) => {
                let Some(sender) = codec::decode::<u32>(&hello) else { continue };
                let channel = set_keep_alive(&stream).and_then(|()| Channel::over(stream, MAX_BODY));
                let Ok(Channel { reader, writer }) = channel else { continue };
                if writer.write(&Message::Admitted).is_err() {
                    continue;
                }
                let inbox = Arc::clone(inbox);
                // Without a thread the sender finds its connection closed.
                let _ = thread::spawn("peer", move || inbox.read_rank(sender, reader));
            }
            Ok(_) => {}
            Err(_) => std::thread::sleep(RETRY),
        }
    }
}

/// Connections from this rank to other ranks.
pub(super) struct Peers {
    token: Token,
    /// Number of this rank and identity of its host.
    own: (u32, String),
    open: HashMap<u32, Open>,
    /// Number of the next message to each rank.
    numbers: HashMap<u32, u64>,
    uses: u64,
    /// Hosts to which no connection is possible.
    unreachable: HashSet<String>,
}

struct Open {
    writer: MessageWriter,
    last_use: u64,
}

impl Peers {
    pub(super) fn of(own: &Hello, token: Token) -> Peers {
        Peers {
            token,
            own: (own.rank, own.identity.clone()),
            open: HashMap::new(),
            numbers: HashMap::new(),
            uses: 0,
            unreachable: HashSet::new(),
        }
    }

    pub(super) fn own_rank(&self) -> u32 {
        self.own.0
    }

    /// Returns the number of the next message to a rank.
    pub(super) fn next_number(&mut self, to: u32) -> u64 {
        let number = self.numbers.entry(to).or_default();
        *number += 1;
        *number - 1
    }

    /// Returns the connection to a rank, which is made for the first message; `None` if the coordinator must relay.
    pub(super) fn connection(&mut self, to: &Hello) -> Option<MessageWriter> {
        self.uses += 1;
        if let Some(open) = self.open.get_mut(&to.rank) {
            open.last_use = self.uses;
            return Some(open.writer.clone());
        }
        if self.unreachable.contains(&to.identity) {
            return None;
        }
        let writer = self.address(to).and_then(|address| self.connect(address));
        let Some(writer) = writer else {
            self.unreachable.insert(to.identity.clone());
            return None;
        };
        if self.open.len() >= MAX_OPEN {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.last_use).map(|(rank, _)| *rank);
            oldest.and_then(|rank| self.open.remove(&rank));
        }
        self.open.insert(to.rank, Open { writer: writer.clone(), last_use: self.uses });
        Some(writer)
    }

    /// Returns the address of a rank's listener: loopback on this host, else the one that the coordinator sees. A rank that the
    /// coordinator sees on loopback has none for other hosts.
    fn address(&self, to: &Hello) -> Option<SocketAddr> {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let ip =
            if to.identity == self.own.1 { Some(loopback) } else { to.seen.filter(|ip| !ip.is_loopback()) };
        Some((ip?, Some(to.port).filter(|port| *port > 0)?).into())
    }

    fn connect(&self, to: SocketAddr) -> Option<MessageWriter> {
        let limit = if to.ip().is_loopback() { CONNECT_TIMEOUT_HERE } else { CONNECT_TIMEOUT };
        let (deadline, hello) = (Deadline::after(limit), codec::encode(&self.own.0));
        let connected =
            listener::connect(&Address::Tcp(to), &self.token, &hello, &SocketOptions::default(), deadline);
        let stream = connected.ok()?;
        let socket = stream.try_clone().ok()?;
        let Channel { mut reader, writer } = Channel::over(stream, MAX_BODY).ok()?;
        // Nothing may follow the hello before the rank is admitted.
        reader.read::<Message>().ok().filter(|message| *message == Message::Admitted)?;
        set_keep_alive(&socket).ok()?;
        Some(writer)
    }
}
