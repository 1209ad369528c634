//! A rank's connection to its coordinator, through which it exchanges messages with every other rank.

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    io::Write,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ombx_core::error::{Error, Result};

use crate::{
    coordinator::{arrival, decode_end, end, spawn, watch},
    deadline::Deadline,
    door,
    frame::{Frame, FrameError, MOST},
    options::Options,
    protocol::{BYE, Card, END, MAIL, PART, ROSTER, decode_mail, decode_roster, encode_mail},
    stream::{Address, Stream},
    token::Token,
};

/// How often a rank that waits looks after what it has promised to tend.
const TENDS: Duration = Duration::from_millis(5);
/// One of several addresses of the coordinator answers within this time, or the next is tried.
const ANSWERS: Duration = Duration::from_secs(5);

/// What ends a process when the session ends without it: an exit code and a sentence.
pub type End = fn(u8, &str);

/// Something that needs attention while its rank waits for others.
pub(crate) trait Tend {
    fn tend(&self);
}

#[derive(Debug, Default)]
struct Inbox {
    letters: HashMap<u32, VecDeque<Vec<u8>>>,
    partial: HashMap<u32, Vec<u8>>,
}

#[derive(Debug, Default)]
struct Letterbox {
    inbox: Mutex<Inbox>,
    came: Condvar,
    /// This rank has left: how the session ends is no news.
    left: AtomicBool,
}

/// A rank's post.
pub(crate) struct Post {
    to: RefCell<Stream>,
    inbox: Arc<Letterbox>,
    /// Every rank of the session.
    pub(crate) cards: Vec<Card>,
    /// The coordinator's address, as this rank reached it.
    pub(crate) dialled: Option<SocketAddr>,
    tended: RefCell<Option<Rc<dyn Tend>>>,
}

impl Post {
    /// Joins a session as `rank` and waits until all ranks have. From then on a thread listens; it calls `ends` when the
    /// session ends before this rank has left it.
    pub(crate) fn join(addresses: &[SocketAddr], token: &Token, rank: u32, ends: End) -> Result<Post> {
        let mut stream = reach(addresses, token, rank)?;
        let dialled = stream.peer();
        let failed = |e: FrameError| Error::fabric(format!("rank {rank} could not join the session: {e}"));
        let cards = match Frame::read(&mut stream, MOST).map_err(failed)? {
            Frame { kind: ROSTER, body } => decode_roster(&body)?,
            Frame { kind: END, body } => {
                let (code, why) = decode_end(&body);
                ends(code, &why);
                return Err(Error::fabric(why));
            }
            Frame { kind, .. } => {
                return Err(Error::fabric(format!(
                    "the coordinator began with a frame of unknown kind {kind}"
                )));
            }
        };
        watch(&stream).map_err(|e| failed(FrameError::Io(e)))?;
        let inbox = Arc::new(Letterbox::default());
        let (from, into) = (stream.try_clone().map_err(|e| failed(FrameError::Io(e)))?, Arc::clone(&inbox));
        spawn("post", move || into.listen(from, ends))?;
        Ok(Post { to: RefCell::new(stream), inbox, cards, dialled, tended: RefCell::new(None) })
    }

    /// Sends a message to a rank.
    pub(crate) fn send(&self, to: u32, message: &[u8]) -> Result<()> {
        let parts = message.chunks(PART);
        let last = parts.len().saturating_sub(1);
        if message.is_empty() {
            return self.say(&Frame::new(MAIL, encode_mail(to, false, &[])));
        }
        for (at, part) in parts.enumerate() {
            self.say(&Frame::new(MAIL, encode_mail(to, at < last, part)))?;
        }
        Ok(())
    }

    /// The next message of a rank.
    pub(crate) fn receive(&self, from: u32) -> Vec<u8> {
        let tended = self.tended.borrow().clone();
        let mut inbox = self.inbox.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(letter) = inbox.letters.entry(from).or_default().pop_front() {
                return letter;
            }
            inbox = match &tended {
                None => self.inbox.came.wait(inbox).unwrap_or_else(PoisonError::into_inner),
                Some(tended) => {
                    let waited = self.inbox.came.wait_timeout(inbox, TENDS);
                    let inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
                    tended.tend();
                    inbox
                }
            };
        }
    }

    /// Looks after something whenever this rank waits, instead of what it looked after before.
    pub(crate) fn look_after(&self, what: Option<Rc<dyn Tend>>) {
        *self.tended.borrow_mut() = what;
    }

    /// Leaves the session: what ends it from now on does not concern this rank.
    pub(crate) fn leave(&self) {
        self.inbox.left.store(true, Ordering::SeqCst);
        // A coordinator that is gone needs no farewell.
        let _ = self.say(&Frame::new(BYE, []));
    }

    /// Ends every rank.
    pub(crate) fn end_all(&self, code: u8) {
        let _ = self.say(&end(code, ""));
    }

    fn say(&self, frame: &Frame) -> Result<()> {
        let bytes = frame.encode()?;
        self.to
            .borrow_mut()
            .write_all(&bytes)
            .map_err(|e| Error::fabric(format!("the coordinator of the session is gone: {e}")))
    }
}

fn reach(addresses: &[SocketAddr], token: &Token, rank: u32) -> Result<Stream> {
    let mut failure = Error::fabric("the coordinator has no address");
    let card = Card::mine(rank).encode();
    for address in addresses {
        let to = Address::Tcp(*address);
        match door::enter(&to, token, card.as_bytes(), &Options::default(), Deadline::after(ANSWERS)) {
            Ok(stream) => {
                let limited = stream.limit(Some(arrival().limit()));
                limited.map_err(|e| Error::fabric(format!("a connection has no deadline: {e}")))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure.within("the coordinator of the session"))
}

impl Letterbox {
    /// Sorts what comes by sender, until the session ends.
    fn listen(&self, mut from: Stream, ends: End) {
        let ends = |code: u8, why: &str| {
            if !self.left.load(Ordering::SeqCst) {
                ends(code, why);
            }
        };
        loop {
            match Frame::read(&mut from, MOST) {
                Ok(Frame { kind: MAIL, body }) => match decode_mail(&body) {
                    Some((sender, more, part)) => self.put(sender, more, part),
                    None => return ends(6, "the coordinator sent mail that cannot be read"),
                },
                Ok(Frame { kind: END, body }) => {
                    let (code, why) = decode_end(&body);
                    return ends(code, &why);
                }
                Ok(Frame { kind, .. }) => {
                    return ends(6, &format!("the coordinator sent a frame of unknown kind {kind}"));
                }
                Err(FrameError::Late) => {}
                Err(error) => return ends(6, &format!("the coordinator of the session is gone: {error}")),
            }
        }
    }

    fn put(&self, sender: u32, more: bool, part: &[u8]) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let letter = inbox.partial.entry(sender).or_default();
        letter.extend(part);
        if !more {
            let letter = inbox.partial.remove(&sender).unwrap_or_default();
            inbox.letters.entry(sender).or_default().push_back(letter);
            self.came.notify_all();
        }
    }
}
