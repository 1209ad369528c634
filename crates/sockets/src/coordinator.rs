//! The coordinator of a session: admits its ranks, passes on what they say to each other, and ends all when one is lost.
//!
//! Threads of it sleep in the kernel until a rank says something: while ranks measure, it takes no time from them.

use std::{
    io::Write,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Builder},
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    unit::Rank,
};

use crate::{
    deadline::Deadline,
    door::{Door, Guest, Knock},
    frame::{Frame, FrameError, MOST},
    protocol::{self, BYE, Card, END, MAIL, ROSTER, decode_mail, encode_mail, encode_roster},
    stream::Stream,
    token::Token,
};

/// A rank takes what is sent to it within this time, or is lost.
const TAKES: Duration = Duration::from_secs(30);
/// The door is served in steps of this length.
const LONG: Duration = Duration::from_secs(3600);

/// What a coordinator tells whoever started it.
#[derive(Debug)]
pub enum Happening {
    /// All ranks are there.
    Complete,
    /// Strangers were turned away, so many until now.
    Strangers(u64),
    /// A rank has done its work.
    Done(Rank),
    /// The connection to a rank that had not done its work has ended; the others have been told to end.
    Lost {
        /// Which.
        rank: Rank,
        /// Where it ran.
        host: String,
        /// How the connection ended.
        why: String,
    },
    /// A rank ended the session itself, after saying why; the others have been told to end.
    Ended {
        /// Which.
        rank: Rank,
        /// With this exit code.
        code: u8,
    },
}

/// Hears what happens; called on any thread.
pub type Hears = Box<dyn Fn(Happening) + Send + Sync>;

/// Ranks that know it by now, and what they are told.
pub struct Coordinator {
    ranks: Vec<Mutex<Option<Seat>>>,
    over: Mutex<Option<(u8, String)>>,
    hears: Hears,
}

#[derive(Debug)]
struct Seat {
    card: Card,
    to: Stream,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Coordinator {
    /// Serves a door in threads of its own, for as long as this process lives: admits `size` ranks and turns strangers away.
    pub fn start(mut door: Door, size: u32, hears: Hears) -> Result<Arc<Coordinator>> {
        let ranks = (0..size).map(|_| Mutex::new(None)).collect();
        let this = Arc::new(Coordinator { ranks, over: Mutex::new(None), hears });
        let coordinator = Arc::clone(&this);
        let serve = move || {
            loop {
                match door.serve(LONG) {
                    Ok(Some(Knock::Guest(guest))) => coordinator.assign(guest),
                    Ok(Some(Knock::Strangers(many))) => coordinator.tell(Happening::Strangers(many)),
                    Ok(None) => {}
                    // Out of descriptors, for instance: those who knock wait.
                    Err(_) => thread::sleep(Duration::from_secs(1)),
                }
            }
        };
        spawn("door", serve)?;
        Ok(this)
    }

    fn tell(&self, event: Happening) {
        (self.hears)(event);
    }

    /// Gives a guest its seat, unless it is not one of this session's ranks or has come twice.
    fn assign(self: &Arc<Self>, Guest { stream, said }: Guest) {
        let card = String::from_utf8(said).ok().and_then(|text| Card::decode(&text));
        let Some(mut card) = card else { return };
        if card.version != protocol::version() {
            let why = format!("rank {} on {} is of another build of ombx", card.rank, card.host);
            return self.end_all(6, &why);
        }
        card.seen = stream.peer().map(|address| address.ip().to_canonical());
        let Some(seat) = self.ranks.get(card.rank as usize) else { return };
        let ready = watch(&stream).and_then(|()| stream.try_clone());
        let Ok(from) = ready else { return };
        let rank = card.rank;
        {
            let mut seat = lock(seat);
            if seat.is_some() {
                return;
            }
            *seat = Some(Seat { card, to: stream });
        }
        if let Some((code, why)) = lock(&self.over).clone() {
            self.send(rank, &end(code, &why));
        }
        if self.ranks.iter().all(|seat| lock(seat).is_some()) {
            self.complete();
        }
        let this = Arc::clone(self);
        if spawn("rank", move || this.hear(rank, from)).is_err() {
            self.lost(rank, "no thread could be started for it".into());
        }
    }

    fn complete(&self) {
        let cards: Vec<Card> =
            self.ranks.iter().filter_map(|seat| lock(seat).as_ref().map(|seat| seat.card.clone())).collect();
        let roster = Frame::new(ROSTER, encode_roster(&cards));
        (0..self.ranks.len() as u32).for_each(|rank| self.send(rank, &roster));
        self.tell(Happening::Complete);
    }

    /// Passes on what a rank says, until it has gone.
    fn hear(&self, rank: u32, mut from: Stream) {
        let why = loop {
            match Frame::read(&mut from, MOST) {
                Ok(Frame { kind: MAIL, body }) => match decode_mail(&body) {
                    Some((to, more, part)) if (to as usize) < self.ranks.len() => {
                        self.send(to, &Frame::new(MAIL, encode_mail(rank, more, part)));
                    }
                    _ => break "it sent mail that cannot be read".to_owned(),
                },
                Ok(Frame { kind: BYE, .. }) => return self.tell(Happening::Done(Rank(rank))),
                Ok(Frame { kind: END, body }) => {
                    let (code, why) = decode_end(&body);
                    return self.over(code, &why, Some(Happening::Ended { rank: Rank(rank), code }));
                }
                Ok(Frame { kind, .. }) => break format!("it sent a frame of unknown kind {kind}"),
                Err(FrameError::Late) => {}
                Err(error) => break error.to_string(),
            }
        };
        self.lost(rank, why);
    }

    fn lost(&self, rank: u32, why: String) {
        let host = self.host(rank);
        let told = format!("rank {rank} on {host} was lost: {why}");
        self.over(6, &told, Some(Happening::Lost { rank: Rank(rank), host, why }));
    }

    /// Where a rank runs, as far as it has said.
    fn host(&self, rank: u32) -> String {
        let seat = self.ranks.get(rank as usize).map(lock);
        seat.and_then(|seat| seat.as_ref().map(|seat| seat.card.host.clone())).unwrap_or_default()
    }

    /// Ranks that have not come yet.
    pub fn missing(&self) -> Vec<Rank> {
        let empty = |rank: &u32| lock(&self.ranks[*rank as usize]).is_none();
        (0..self.ranks.len() as u32).filter(empty).map(Rank).collect()
    }

    /// Tells every rank to end, the first time that it is called.
    pub fn end_all(&self, code: u8, why: &str) {
        self.over(code, why, None);
    }

    /// The session is over. What ended it is told before any rank hears of it: those that then go are not to be taken for it.
    fn over(&self, code: u8, why: &str, event: Option<Happening>) {
        let first = {
            let mut over = lock(&self.over);
            let first = over.is_none();
            over.get_or_insert_with(|| (code, why.to_owned()));
            first
        };
        if let Some(event) = event {
            self.tell(event);
        }
        if first {
            (0..self.ranks.len() as u32).for_each(|rank| self.send(rank, &end(code, why)));
        }
    }

    fn send(&self, rank: u32, frame: &Frame) {
        let Ok(bytes) = frame.encode() else { return };
        if let Some(Seat { to, .. }) = &mut *lock(&self.ranks[rank as usize])
            && to.write_all(&bytes).is_err()
        {
            // Its reader finds out, and tells.
            to.shutdown();
        }
    }
}

/// Notices when the host at the other end is gone, not only its process.
pub(crate) fn watch(stream: &Stream) -> std::io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_timeout(stream, sockopt::Timeout::Recv, None)?;
    sockopt::set_socket_timeout(stream, sockopt::Timeout::Send, Some(TAKES))?;
    if let Stream::Tcp(_) = stream {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_nodelay(stream, true)?;
        sockopt::set_tcp_keepidle(stream, Duration::from_secs(5))?;
        sockopt::set_tcp_keepintvl(stream, Duration::from_secs(2))?;
        sockopt::set_tcp_keepcnt(stream, 3)?;
        sockopt::set_tcp_user_timeout(stream, 15_000)?;
    }
    Ok(())
}

pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = Builder::new().name(name.into()).stack_size(256 * 1024).spawn(work);
    started.map(|_| ()).map_err(|e| Error::fabric(format!("a thread could not be started: {e}")))
}

pub(crate) fn end(code: u8, why: &str) -> Frame {
    // A sentence; what is longer is not one.
    let why: String = why.chars().take(1000).collect();
    Frame::new(END, [&[code], why.as_bytes()].concat())
}

pub(crate) fn decode_end(body: &[u8]) -> (u8, String) {
    match body.split_first() {
        Some((code, why)) => (*code, String::from_utf8_lossy(why).into_owned()),
        None => (6, String::new()),
    }
}

/// The address by which this host reaches another, found without sending anything; none where the name is not known.
pub fn address_towards(host: &str) -> Option<IpAddr> {
    use std::net::{ToSocketAddrs, UdpSocket};
    let host = host.rsplit('@').next()?.trim_matches(['[', ']']);
    let targets = (host, 9).to_socket_addrs().ok()?;
    targets.into_iter().find_map(|to| {
        let any: IpAddr = if to.is_ipv4() { [0u8; 4].into() } else { [0u16; 8].into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|own| own.ip())
    })
}

/// A session's door: on every address where ranks are on other hosts too, else on loopback alone.
pub fn open_door(token: Token, reach: Reach) -> Result<Door> {
    match reach {
        Reach::ThisHost => Door::tcp([127, 0, 0, 1].into(), &crate::options::Options::default(), token),
        Reach::Everywhere => Door::everywhere(token),
    }
}

/// From where ranks come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This host alone.
    ThisHost,
    /// Others too.
    Everywhere,
}

/// A deadline for ranks to arrive.
pub(crate) fn arrival() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::{door, stream::Address};

    /// The others go as soon as they are told to; whoever listens still hears first who it was.
    #[test]
    fn the_rank_that_was_lost_is_told_first() {
        for _ in 0..100 {
            let token = Token::random().unwrap();
            let door = open_door(token, Reach::ThisHost).unwrap();
            let address = Address::Tcp(([127, 0, 0, 1], door.port()).into());
            let (tell, told) = mpsc::channel();
            let tell = Mutex::new(tell);
            Coordinator::start(door, 4, Box::new(move |event| drop(lock(&tell).send(event)))).unwrap();
            let enter = |rank| {
                let card = Card::mine(rank).encode();
                let limit = Deadline::after(Duration::from_secs(10));
                door::enter(&address, &token, card.as_bytes(), &Default::default(), limit).unwrap()
            };
            let mut ranks: Vec<Stream> = (0..4).map(enter).collect();
            assert!(matches!(told.recv().unwrap(), Happening::Complete));
            let lost = ranks.pop();
            let others = ranks.into_iter().map(|mut rank| {
                thread::spawn(move || while Frame::read(&mut rank, MOST).unwrap().kind != END {})
            });
            let others: Vec<_> = others.collect();
            drop(lost);
            let first = told.recv().unwrap();
            assert!(matches!(first, Happening::Lost { rank: Rank(3), .. }), "{first:?}");
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    }
}
