//! A rank's connections: to its coordinator, and to other ranks, with which it exchanges messages.

use std::{cell::RefCell, io, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use ombx_core::{
    codec,
    error::{Error, Result},
};

use super::{
    inbox::{IdleTask, Inbox, OnEnd},
    peers::{Entrance, Peers},
    protocol::{End, Hello, MAX_PART, Message, Part, set_keep_alive},
};
use crate::{
    control::{Channel, FrameError, MAX_BODY, MessageReader, MessageWriter, Token, listener, thread},
    socket::{Address, Deadline, SocketOptions, Stream},
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
    pub(super) coordinator: Option<SocketAddr>,
    idle_task: RefCell<Option<Rc<dyn IdleTask>>>,
    /// Ends with this connection.
    _entrance: Entrance,
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
        let entrance = Entrance::open(addresses, *token, &inbox)?;
        let hello = Hello::of_this_process(rank, entrance.port());
        let stream = connect(addresses, token, &hello, limit)?;
        let coordinator = stream.peer();
        let socket = stream.try_clone().map_err(io)?;
        let Channel { mut reader, writer } = Channel::over(stream, MAX_BODY).map_err(io)?;
        let ranks = read_ranks(&mut reader, &inbox, on_end, failed)?;
        set_keep_alive(&socket).map_err(io)?;
        let peers = RefCell::new(Peers::of(&hello, *token));
        let filled = Arc::clone(&inbox);
        thread::spawn("inbox", move || filled.read_coordinator(reader, on_end))?;
        let idle_task = RefCell::new(None);
        Ok(Connection { writer, inbox, peers, ranks, coordinator, idle_task, _entrance: entrance })
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
            let written = writer.write(&Message::Data(Part { other, more, number, bytes: part.to_vec() }));
            written.map_err(|e| Error::fabric(format!("{gone} is gone: {e}")))
        };
        if message.is_empty() {
            return write(false, &[]);
        }
        let last = (message.len() - 1) / MAX_PART;
        message.chunks(MAX_PART).enumerate().try_for_each(|(at, part)| write(at < last, part))
    }

    /// Waits for the next message of a rank; repeats the idle task meanwhile.
    pub(super) fn receive(&self, from: u32) -> Vec<u8> {
        let idle_task = self.idle_task.borrow().clone();
        self.inbox.receive(from, idle_task.as_deref())
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
