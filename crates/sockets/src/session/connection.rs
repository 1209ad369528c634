//! A rank's connection to its coordinator, through which it exchanges messages with every other rank.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ombx_core::error::{Error, Result};

use super::protocol::{Hello, MAX_PART, data, end, read_data, read_end, read_rank_table, set_keep_alive};
use crate::{
    control::{
        Channel, FrameError, Kind, MAX_BODY, Message, MessageReader, MessageWriter, Token, listener, thread,
    },
    socket::{Address, Deadline, SocketOptions, Stream},
};

/// All ranks join within this time.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
/// One address of the coordinator answers within this time, else the next is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a waiting rank runs its idle task.
const IDLE_INTERVAL: Duration = Duration::from_millis(5);

/// Function that a rank calls when the session ends before the rank has left it: with an exit code and a sentence.
pub type OnEnd = fn(u8, &str);

/// Work that a rank repeats while it waits for a message.
pub(crate) trait IdleTask {
    fn run(&self);
}

/// Messages that have arrived.
#[derive(Debug, Default)]
struct Arrived {
    complete: HashMap<u32, VecDeque<Vec<u8>>>,
    partial: HashMap<u32, Vec<u8>>,
}

/// Messages from other ranks, filled by the thread that reads the connection.
#[derive(Debug, Default)]
struct Inbox {
    arrived: Mutex<Arrived>,
    changed: Condvar,
    /// Whether this rank has left. From then on the end of the session is no failure.
    left: AtomicBool,
}

/// A rank's connection to its coordinator.
pub(super) struct Connection {
    writer: MessageWriter,
    inbox: Arc<Inbox>,
    /// Every rank of the session, in rank order.
    pub(super) ranks: Vec<Hello>,
    /// The address at which this rank reached the coordinator.
    pub(super) coordinator: Option<SocketAddr>,
    idle_task: RefCell<Option<Rc<dyn IdleTask>>>,
}

impl Connection {
    /// Joins a session as `rank` and waits until all ranks have joined.
    ///
    /// A thread then reads the connection. It calls `on_end` when the session ends before this rank has left it.
    pub(super) fn join(
        addresses: &[SocketAddr],
        token: &Token,
        rank: u32,
        on_end: OnEnd,
    ) -> Result<Connection> {
        let failed = |e: FrameError| Error::fabric(format!("rank {rank} cannot join the session: {e}"));
        let io = |e: io::Error| failed(FrameError::Io(e));
        let stream = connect(addresses, token, rank)?;
        let coordinator = stream.peer();
        let socket = stream.try_clone().map_err(io)?;
        let Channel { mut reader, writer } = Channel::over(stream, MAX_BODY).map_err(io)?;
        let first = reader.read().map_err(failed)?;
        let ranks = match first.kind {
            Kind::RankTable => read_rank_table(&first)?,
            Kind::End => {
                let (code, why) = read_end(&first);
                on_end(code, why);
                return Err(Error::fabric(why));
            }
            kind => {
                return Err(Error::fabric(format!("the coordinator sent an unexpected message ({kind:?})")));
            }
        };
        set_keep_alive(&socket).map_err(io)?;
        let inbox = Arc::new(Inbox::default());
        let filled = Arc::clone(&inbox);
        thread::spawn("inbox", move || filled.fill(reader, on_end))?;
        Ok(Connection { writer, inbox, ranks, coordinator, idle_task: RefCell::new(None) })
    }

    /// Sends a message to a rank, in parts if it is longer than a frame.
    pub(super) fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        if message.is_empty() {
            return self.write(&data(to, false, &[]));
        }
        let last = (message.len() - 1) / MAX_PART;
        let mut parts = message.chunks(MAX_PART).enumerate();
        parts.try_for_each(|(at, part)| self.write(&data(to, at < last, part)))
    }

    /// Waits for the next message of a rank; repeats the idle task meanwhile.
    pub(super) fn receive(&self, from: u32) -> Vec<u8> {
        let idle_task = self.idle_task.borrow().clone();
        let mut arrived = self.inbox.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(message) = arrived.complete.entry(from).or_default().pop_front() {
                return message;
            }
            arrived = match &idle_task {
                None => self.inbox.changed.wait(arrived).unwrap_or_else(PoisonError::into_inner),
                Some(task) => {
                    let waited = self.inbox.changed.wait_timeout(arrived, IDLE_INTERVAL);
                    let arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
                    task.run();
                    arrived
                }
            };
        }
    }

    /// Replaces the idle task.
    pub(super) fn set_idle_task(&self, task: Option<Rc<dyn IdleTask>>) {
        *self.idle_task.borrow_mut() = task;
    }

    /// Leaves the session. The end of the session does not concern this rank any more.
    pub(super) fn leave(&self) {
        self.inbox.left.store(true, Ordering::SeqCst);
        // Fails if the coordinator has ended, which is no failure from now on.
        let _ = self.write(&Message::new(Kind::Leave));
    }

    /// Asks the coordinator to end every rank.
    pub(super) fn end_all(&self, code: u8) {
        let _ = self.write(&end(code, ""));
    }

    fn write(&self, message: &Message) -> Result<()> {
        self.writer
            .write(message)
            .map_err(|e| Error::fabric(format!("the coordinator of the session is gone: {e}")))
    }
}

/// Connects to the first address of the coordinator that answers.
fn connect(addresses: &[SocketAddr], token: &Token, rank: u32) -> Result<Stream> {
    let mut failure = Error::fabric("it has no address");
    let hello = Hello::of_this_process(rank).encode();
    for address in addresses {
        let (to, limit) = (Address::Tcp(*address), Deadline::after(CONNECT_TIMEOUT));
        match listener::connect(&to, token, hello.as_bytes(), &SocketOptions::default(), limit) {
            Ok(stream) => {
                let limited = stream.set_timeout(Some(JOIN_TIMEOUT));
                limited.map_err(|e| Error::fabric(format!("cannot set the timeout of a connection: {e}")))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure.within("the coordinator of the session"))
}

impl Inbox {
    /// Reads messages until the session ends.
    fn fill(&self, mut reader: MessageReader, on_end: OnEnd) {
        let on_end = |code: u8, why: &str| {
            if !self.left.load(Ordering::SeqCst) {
                on_end(code, why);
            }
        };
        loop {
            match reader.read() {
                Ok(message) if message.kind == Kind::End => {
                    let (code, why) = read_end(&message);
                    return on_end(code, why);
                }
                Ok(message) => match read_data(&message) {
                    Some((sender, more)) => self.put(sender, more, &message.data),
                    None => {
                        return on_end(
                            6,
                            &format!("the coordinator sent an invalid message ({:?})", message.kind),
                        );
                    }
                },
                Err(FrameError::TimedOut) => {}
                Err(error) => return on_end(6, &format!("the coordinator of the session is gone: {error}")),
            }
        }
    }

    fn put(&self, sender: u32, more: bool, part: &[u8]) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.partial.entry(sender).or_default().extend(part);
        if !more {
            let message = arrived.partial.remove(&sender).unwrap_or_default();
            arrived.complete.entry(sender).or_default().push_back(message);
            self.changed.notify_all();
        }
    }
}
