//! Direct connections between ranks, each for messages in one direction, and the messages that have arrived.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ombx_core::{
    codec,
    error::{Exit, Result},
};

use crate::{
    control::{Attempt, Channel, FrameError, MAX_BODY, MessageReader, MessageWriter, Peer, Token, listener},
    session::{
        connection::{End, Hello, Links, Message, MessagePart, set_keep_alive},
        coordinator::{Reach, listen},
    },
    socket::{Address, Deadline, SocketOptions, loopback},
};

/// Maximum number of open connections to other ranks; one more closes the one that was used least recently.
const MAX_OPEN: usize = 128;
/// A rank admits another within this time, else the coordinator relays. Ranks of one host share its CPUs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT_HERE: Duration = Duration::from_secs(30);

/// Listener of a rank for messages of other ranks. Dropping it ends its thread.
pub(super) struct PeerListener {
    inbox: Arc<Inbox>,
    port: u16,
}

impl PeerListener {
    /// Listens on a thread: on loopback if the coordinator's first address is there, else on every address.
    pub(super) fn open(coordinator: &[SocketAddr], token: Token, inbox: &Arc<Inbox>) -> Result<PeerListener> {
        let here = coordinator.first().is_some_and(|address| address.ip().is_loopback());
        let listener = listen(token, if here { Reach::ThisHost } else { Reach::Everywhere })?;
        let (port, inbox) = (listener.port(), Arc::clone(inbox));
        let filled = Arc::clone(&inbox);
        listener::spawn_thread("peers", move || {
            listener.admit(|attempt| {
                if let Attempt::Admitted(peer) = attempt {
                    admit(peer, &filled);
                }
                !filled.is_closed()
            });
        })?;
        Ok(PeerListener { inbox, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for PeerListener {
    fn drop(&mut self) {
        self.inbox.close();
        // A connection without the token wakes the thread.
        let _ = TcpStream::connect((loopback(), self.port));
    }
}

/// Admits another rank and reads its messages on a thread.
fn admit(Peer { stream, hello }: Peer, inbox: &Arc<Inbox>) {
    let Some(sender) = codec::decode::<u32>(&hello) else { return };
    let channel = set_keep_alive(&stream).and_then(|()| Channel::over(stream, MAX_BODY));
    let Ok(Channel { reader, writer }) = channel else { return };
    if writer.write(&Message::Admitted).is_ok() {
        let inbox = Arc::clone(inbox);
        // Without a thread the sender finds its connection closed.
        let _ = listener::spawn_thread("peer", move || inbox.read_rank(sender, reader));
    }
}

/// Connections from this rank to other ranks.
pub(super) struct Peers {
    token: Token,
    own_rank: u32,
    /// Identity of this host.
    own_host: String,
    links: Links,
    open: HashMap<u32, Open>,
    /// Number of the next message to each rank.
    numbers: HashMap<u32, u64>,
    /// Number of messages so far, which tells when a connection was used.
    uses: u64,
    /// Hosts to which no connection is possible.
    unreachable: HashSet<String>,
}

struct Open {
    writer: MessageWriter,
    last_use: u64,
}

impl Peers {
    pub(super) fn new(own: &Hello, token: Token, links: Links) -> Peers {
        Peers {
            token,
            own_rank: own.rank,
            own_host: own.identity.clone(),
            links,
            open: HashMap::new(),
            numbers: HashMap::new(),
            uses: 0,
            unreachable: HashSet::new(),
        }
    }

    pub(super) fn own_rank(&self) -> u32 {
        self.own_rank
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
            drop(oldest.and_then(|rank| self.open.remove(&rank)));
        }
        self.open.insert(to.rank, Open { writer: writer.clone(), last_use: self.uses });
        Some(writer)
    }

    /// Returns the address of a rank's listener: loopback on this host, else the one that the coordinator sees. A rank that the
    /// coordinator sees on loopback has none for other hosts.
    fn address(&self, to: &Hello) -> Option<SocketAddr> {
        let ip = if to.identity == self.own_host { loopback().into() } else { self.links.address_of(to)? };
        (to.port > 0).then(|| ip.at(to.port))
    }

    fn connect(&self, to: SocketAddr) -> Option<MessageWriter> {
        let limit = if to.ip().is_loopback() { CONNECT_TIMEOUT_HERE } else { CONNECT_TIMEOUT };
        let (deadline, hello) = (Deadline::after(limit), codec::encode(&self.own_rank));
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

/// Interval at which a waiting rank runs its idle task.
const IDLE_INTERVAL: Duration = Duration::from_millis(5);

/// Function that a rank calls when the session ends before the rank has left it: with an exit code and a sentence.
pub type OnEnd = fn(u8, &str);

/// Work that a rank repeats while it waits for a message.
pub(crate) trait IdleTask {
    fn run(&self);
}

/// Messages from other ranks, filled by the threads that read connections.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    arrived: Mutex<HashMap<u32, FromRank>>,
    changed: Condvar,
    /// Whether this rank has left. From then on the end of the session is no failure.
    left: AtomicBool,
    /// Whether nobody waits for messages any more.
    closed: AtomicBool,
}

/// Messages from one rank. They may arrive by different connections, in any order.
#[derive(Debug, Default)]
struct FromRank {
    /// Messages without a gap before them.
    complete: VecDeque<Vec<u8>>,
    /// Number of the message after these.
    next: u64,
    /// Later messages, by number.
    early: BTreeMap<u64, Vec<u8>>,
    /// Messages of which parts are missing, by number.
    partial: BTreeMap<u64, Vec<u8>>,
}

impl FromRank {
    fn add(&mut self, MessagePart { more, number, bytes, .. }: MessagePart) {
        let partial = self.partial.entry(number).or_default();
        if partial.is_empty() {
            *partial = bytes;
        } else {
            partial.extend(bytes);
        }
        if more {
            return;
        }
        let message = self.partial.remove(&number).unwrap_or_default();
        self.early.insert(number, message);
        while let Some(message) = self.early.remove(&self.next) {
            self.complete.push_back(message);
            self.next += 1;
        }
    }

    fn take(&mut self, wanted: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let at = self.complete.iter().position(|message| wanted(message))?;
        self.complete.remove(at)
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, FromRank>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads messages of the coordinator until the session ends.
    pub(super) fn read_coordinator(&self, mut reader: MessageReader, on_end: OnEnd) {
        let on_end = |code: u8, why: &str| {
            if !self.has_left() {
                on_end(code, why);
            }
        };
        let failed = |why: &str| on_end(Exit::Fabric.code(), why);
        loop {
            match reader.read() {
                Ok(Message::End(End { code, why })) => return on_end(code, &why),
                Ok(Message::Data(part)) => self.put(part),
                Ok(other) => {
                    return failed(&format!("the coordinator sent an invalid message ({})", other.name()));
                }
                Err(FrameError::TimedOut) => {}
                Err(error) => return failed(&format!("the coordinator of the session is gone: {error}")),
            }
        }
    }

    /// Reads messages of another rank until it closes the connection. The coordinator reports a rank that is lost.
    fn read_rank(&self, sender: u32, mut reader: MessageReader) {
        while let Ok(Message::Data(part)) = reader.read() {
            if part.other != sender {
                return;
            }
            self.put(part);
        }
    }

    /// Adds a part of a message; its other rank is the sender.
    pub(super) fn put(&self, part: MessagePart) {
        let more = part.more;
        self.lock().entry(part.other).or_default().add(part);
        if !more {
            self.changed.notify_all();
        }
    }

    /// Waits for the next message of a rank that is one of `wanted`; repeats the idle task meanwhile.
    pub(super) fn receive(
        &self,
        from: u32,
        wanted: fn(&[u8]) -> bool,
        idle_task: Option<&dyn IdleTask>,
    ) -> Vec<u8> {
        let mut arrived = self.lock();
        loop {
            if let Some(message) = arrived.get_mut(&from).and_then(|from| from.take(wanted)) {
                return message;
            }
            arrived = match idle_task {
                None => self.changed.wait(arrived).unwrap_or_else(PoisonError::into_inner),
                Some(task) => {
                    // The inbox is free while the task runs, so that messages can arrive.
                    drop(self.changed.wait_timeout(arrived, IDLE_INTERVAL));
                    task.run();
                    self.lock()
                }
            };
        }
    }

    /// Returns the next message of a rank that is one of `wanted`, if it has arrived.
    pub(super) fn take(&self, from: u32, wanted: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        self.lock().get_mut(&from)?.take(wanted)
    }

    /// Marks that this rank has left.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    fn has_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// Marks that nobody waits for messages any more.
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_wanted_are_received_in_the_order_of_sending() {
        let inbox = Inbox::default();
        let put =
            |other, number, more, byte| inbox.put(MessagePart { other, more, number, bytes: vec![byte] });
        put(1, 1, false, 10);
        put(1, 2, true, 20);
        put(2, 0, false, 99);
        put(1, 0, true, 1);
        put(1, 0, false, 2);
        put(1, 2, false, 21);
        assert_eq!(inbox.take(1, |message| message.len() == 1), Some(vec![10]));
        assert_eq!(inbox.take(2, |message| message.len() == 2), None);
        let received = [1, 2, 1].map(|from| inbox.receive(from, |_| true, None));
        assert_eq!(received, [vec![1, 2], vec![99], vec![20, 21]]);
    }
}
