//! The coordinator of a session: admits ranks, relays messages that cannot go directly from rank to rank, and ends all ranks when
//! one is lost.
//!
//! Its threads wait in the kernel: they use no CPU time while ranks measure.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use ombx_core::{
    codec,
    error::{Exit, Result},
    unit::Rank,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    control::{
        Attempt, Channel, FrameError, Listener, MAX_BODY, MessageReader, MessageWriter, Peer, Token, listener,
    },
    session::connection::{End, Hello, Message, MessagePart, RankTable, set_keep_alive, version},
    socket::{ScopedIp, SocketOptions, loopback},
};

/// An event of a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// All ranks have joined.
    Complete,
    /// Connections without the token were rejected: how many until now.
    Rejected(u64),
    /// A rank shows the token and is another build of ombx, as the sentence says. The other ranks are ended after this event.
    OtherBuild(String),
    /// A rank has done its work.
    Done(Rank),
    /// The connection to a rank broke before its work was done. The other ranks are ended after this event.
    Lost {
        /// The lost rank.
        rank: Rank,
        /// Host of the rank.
        host: String,
        /// How the connection broke.
        why: String,
    },
    /// A rank ended the session and has reported why. The other ranks are ended after this event.
    Ended {
        /// Rank that ended the session.
        rank: Rank,
        /// Exit code that the rank has sent.
        code: u8,
    },
}

/// Handler of session events; called on any thread.
pub type OnEvent = Box<dyn Fn(SessionEvent) + Send + Sync>;

/// Connects ranks with each other, relays messages that cannot go directly, and ends the session on failure.
pub struct Coordinator {
    ranks: Vec<Mutex<Option<Joined>>>,
    /// Number of ranks that have joined.
    joined: AtomicUsize,
    ended: Mutex<Option<End>>,
    on_event: OnEvent,
}

/// A rank that has joined.
struct Joined {
    hello: Hello,
    writer: MessageWriter,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Coordinator {
    /// Admits `size` ranks, on threads that run until this process ends.
    pub fn start(mut listener: Listener, size: u32, on_event: OnEvent) -> Result<Arc<Coordinator>> {
        listener.expect(size as usize);
        raise_file_limit();
        let ranks = (0..size).map(|_| Mutex::new(None)).collect();
        let this =
            Arc::new(Coordinator { ranks, joined: AtomicUsize::new(0), ended: Mutex::new(None), on_event });
        let coordinator = Arc::clone(&this);
        listener::spawn_thread("listener", move || {
            listener.admit(|attempt| {
                match attempt {
                    Attempt::Admitted(peer) => coordinator.join(peer),
                    Attempt::Rejected(count) => coordinator.report(SessionEvent::Rejected(count)),
                }
                true
            });
        })?;
        Ok(this)
    }

    fn report(&self, event: SessionEvent) {
        (self.on_event)(event);
    }

    /// Adds a peer as a rank; closes the connection of an unknown rank or one that has joined already.
    fn join(self: &Arc<Self>, Peer { stream, hello }: Peer) {
        // The form of another build may differ.
        let hello = codec::decode::<Hello>(&hello).ok_or_else(|| "a rank".to_owned()).and_then(|hello| {
            let named = || format!("rank {} on {}", hello.rank, hello.host);
            if hello.version == version() { Ok(hello) } else { Err(named()) }
        });
        let mut hello = match hello {
            Ok(hello) => hello,
            Err(rank) => {
                let from = stream.peer().map_or(String::new(), |at| format!(" ({})", ScopedIp::from(at)));
                let why = format!("{rank}{from} has another build of ombx; install the same on every host");
                let end = End::new(Exit::Fabric.code(), &why);
                return self.end(end, Some(SessionEvent::OtherBuild(why)));
            }
        };
        let rank = hello.rank;
        hello.seen = stream.peer().map(ScopedIp::from);
        let Some(place) = self.ranks.get(rank as usize) else { return };
        let channel = set_keep_alive(&stream).and_then(|()| Channel::over(stream, MAX_BODY));
        let Ok(Channel { reader, writer }) = channel else { return };
        {
            let mut place = lock(place);
            if place.is_some() {
                return;
            }
            *place = Some(Joined { hello, writer });
        }
        if let Some(end) = lock(&self.ended).clone() {
            self.send(rank, &Message::End(end));
        }
        if self.joined.fetch_add(1, Ordering::SeqCst) + 1 == self.ranks.len() {
            self.complete();
        }
        let this = Arc::clone(self);
        if listener::spawn_thread("rank", move || this.relay(rank, reader)).is_err() {
            self.lost(rank, "no thread could be started for it".into());
        }
    }

    fn complete(&self) {
        let hello = |place: &Mutex<Option<Joined>>| lock(place).as_ref().map(|joined| joined.hello.clone());
        let ranks: Vec<Hello> = self.ranks.iter().filter_map(hello).collect();
        RankTable::messages(&ranks).for_each(|message| self.broadcast(&message));
        self.report(SessionEvent::Complete);
    }

    /// Relays the messages of a rank until it leaves, ends the session or is lost.
    fn relay(&self, rank: u32, mut reader: MessageReader) {
        let why = loop {
            match reader.read() {
                Ok(Message::Leave) => return self.report(SessionEvent::Done(Rank(rank))),
                Ok(Message::End(end)) => {
                    let event = SessionEvent::Ended { rank: Rank(rank), code: end.code };
                    return self.end(end, Some(event));
                }
                Ok(Message::Data(part)) if (part.other as usize) < self.ranks.len() => {
                    self.send(part.other, &Message::Data(MessagePart { other: rank, ..part }));
                }
                Ok(other) => break format!("it sent an invalid message ({})", other.name()),
                Err(FrameError::TimedOut) => {}
                Err(error) => break error.to_string(),
            }
        };
        self.lost(rank, why);
    }

    fn lost(&self, rank: u32, why: String) {
        let joined = self.ranks.get(rank as usize).map(lock);
        let host = joined.and_then(|joined| joined.as_ref().map(|joined| joined.hello.host.clone()));
        let host = host.unwrap_or_default();
        let sentence = format!("rank {rank} on {host} was lost: {why}");
        let end = End::new(Exit::Fabric.code(), &sentence);
        self.end(end, Some(SessionEvent::Lost { rank: Rank(rank), host, why }));
    }

    /// Returns the ranks that have not joined yet.
    pub fn missing(&self) -> Vec<Rank> {
        let missing = |rank: &u32| lock(&self.ranks[*rank as usize]).is_none();
        (0..self.ranks.len() as u32).filter(missing).map(Rank).collect()
    }

    /// Ends every rank. Only the first call has an effect.
    pub fn end_all(&self, code: u8, why: &str) {
        self.end(End::new(code, why), None);
    }

    /// Ends the session. The event is reported before any rank is ended, so that no rank's end is taken for the cause.
    fn end(&self, end: End, event: Option<SessionEvent>) {
        let first = {
            let mut ended = lock(&self.ended);
            let first = ended.is_none();
            ended.get_or_insert_with(|| end.clone());
            first
        };
        if let Some(event) = event {
            self.report(event);
        }
        if first {
            self.broadcast(&Message::End(end));
        }
    }

    fn broadcast(&self, message: &Message) {
        (0..self.ranks.len() as u32).for_each(|rank| self.send(rank, message));
    }

    /// Sends a message to a rank that has joined.
    fn send(&self, rank: u32, message: &Message) {
        let writer = lock(&self.ranks[rank as usize]).as_ref().map(|joined| joined.writer.clone());
        if let Some(writer) = writer
            && writer.write(message).is_err()
        {
            // The thread that reads from the rank reports the loss.
            writer.close();
        }
    }
}

/// Raises the limit of open files as far as this user may: each rank needs two.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A lower limit is an error when it is reached.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// From where ranks connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Processes on this host only.
    ThisHost,
    /// From other hosts too.
    Everywhere,
}

/// Opens the listener of a session: on loopback if every rank is on this host, else on every address.
pub fn listen(token: Token, reach: Reach) -> Result<Listener> {
    match reach {
        Reach::ThisHost => Listener::tcp(loopback(), &SocketOptions::default(), token),
        Reach::Everywhere => Listener::on_all_addresses(0, &SocketOptions::default(), token),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;
    use crate::{
        control::listener,
        socket::{Address, Deadline},
    };

    /// A session whose ranks have only their connections to the coordinator.
    fn session(ranks: u32) -> (Vec<Channel>, mpsc::Receiver<SessionEvent>) {
        let token = Token::random().unwrap();
        let listener = listen(token, Reach::ThisHost).unwrap();
        let address = Address::Tcp(([127, 0, 0, 1], listener.port()).into());
        let (sender, events) = mpsc::channel();
        Coordinator::start(listener, ranks, Box::new(move |event| drop(sender.send(event)))).unwrap();
        let join = |rank| {
            let hello = codec::encode(&Hello::of_this_process(rank, 0));
            // Longer than the test takes on a busy machine.
            let limit = Deadline::after(Duration::from_secs(600));
            let joined = listener::connect(&address, &token, &hello, &Default::default(), limit);
            Channel::over(joined.unwrap(), MAX_BODY).unwrap()
        };
        let ranks = (0..ranks).map(join).collect();
        assert!(matches!(events.recv().unwrap(), SessionEvent::Complete));
        (ranks, events)
    }

    #[test]
    fn messages_are_relayed_in_their_order() {
        for (from, to) in [(0, 1), (2, 0)] {
            let (mut ranks, _events) = session(3);
            let part = |other, number| MessagePart {
                other,
                more: number % 2 == 0,
                number,
                bytes: vec![number as u8; 9],
            };
            for number in 0..20 {
                ranks[from as usize].writer.write(&Message::Data(part(to, number))).unwrap();
            }
            // The sender is lost, which ends the session after its messages.
            ranks[from as usize].writer.close();
            let reader = &mut ranks[to as usize].reader;
            let mut relayed = 0;
            loop {
                match reader.read().unwrap() {
                    Message::Data(found) => {
                        assert_eq!(found, part(from, relayed));
                        relayed += 1;
                    }
                    Message::End(_) => break,
                    other => assert!(matches!(other, Message::RankTable(_)), "{other:?}"),
                }
            }
            assert_eq!(relayed, 20, "messages of rank {from}");
        }
    }

    #[test]
    fn a_rank_of_another_build_ends_the_session_with_a_sentence() {
        let older = Hello { version: "ombx 0.0 sockets 1".into(), ..Hello::of_this_process(1, 0) };
        for (hello, rank) in
            [(codec::encode(&older), "rank 1 on "), (b"of another form".to_vec(), "a rank (")]
        {
            let token = Token::random().unwrap();
            let listener = listen(token, Reach::ThisHost).unwrap();
            let address = Address::Tcp(([127, 0, 0, 1], listener.port()).into());
            let (sender, events) = mpsc::channel();
            Coordinator::start(listener, 2, Box::new(move |event| drop(sender.send(event)))).unwrap();
            let limit = Deadline::after(Duration::from_secs(600));
            let _joined = listener::connect(&address, &token, &hello, &Default::default(), limit).unwrap();
            let SessionEvent::OtherBuild(why) = events.recv().unwrap() else { panic!("another event") };
            assert!(why.starts_with(rank) && why.contains("another build"), "{why}");
        }
    }

    /// Checks that the lost rank is reported first, although the other ranks end at once.
    #[test]
    fn the_lost_rank_is_reported_first() {
        for _ in 0..100 {
            let (mut ranks, events) = session(4);
            let lost = ranks.pop();
            let until_end = |mut rank: Channel| {
                std::thread::spawn(move || while !matches!(rank.reader.read().unwrap(), Message::End(_)) {})
            };
            let others: Vec<_> = ranks.into_iter().map(until_end).collect();
            drop(lost);
            let first = events.recv().unwrap();
            assert!(matches!(first, SessionEvent::Lost { rank: Rank(3), .. }), "{first:?}");
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    }
}
