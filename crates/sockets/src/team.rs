//! Processes connected by sockets as the engine's team.

use std::{
    cell::RefCell,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    team::{Fabric, Team},
    unit::Rank,
};

use crate::{
    link::Wishes,
    post::{End, Post, Tend},
    protocol::Card,
    token::Token,
};

/// After telling everybody to end, this process stays so long, that the word gets out.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Ranks of a session, or some of them. Everything between them goes through the coordinator; payload has connections of
/// its own, made case by case.
#[derive(Clone)]
pub struct SocketTeam {
    session: Rc<Session>,
    /// Ranks of this team by their numbers in the session.
    ranks: Vec<u32>,
    me: u32,
}

struct Session {
    post: Post,
    token: Token,
    wishes: RefCell<Wishes>,
}

/// What each message between ranks is, so that ranks that have lost step notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Gather = 1,
    Broadcast = 2,
    Direct = 3,
}

impl SocketTeam {
    /// Joins a session as one of its ranks, at the first of the coordinator's addresses that answers; returns when all ranks
    /// are there. `ends` is called on another thread if the session ends before [`SocketTeam::leave`], and ends this process.
    pub fn join(addresses: &[SocketAddr], token: Token, rank: u32, ends: End) -> Result<SocketTeam> {
        let post = Post::join(addresses, &token, rank, ends)?;
        let ranks = (0..post.cards.len() as u32).collect();
        let session = Session { post, token, wishes: RefCell::new(Wishes::default()) };
        Ok(SocketTeam { session: Rc::new(session), ranks, me: rank })
    }

    /// Leaves the session, the work being done.
    pub fn leave(&self) {
        self.session.post.leave();
    }

    /// The token of the session.
    pub fn token(&self) -> &Token {
        &self.session.token
    }

    /// How the next connections are made.
    pub(crate) fn wishes(&self) -> Wishes {
        self.session.wishes.borrow().clone()
    }

    pub(crate) fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut self.session.wishes.borrow_mut());
    }

    pub(crate) fn look_after(&self, what: Option<Rc<dyn Tend>>) {
        self.session.post.look_after(what);
    }

    fn card(&self, rank: Rank) -> &Card {
        &self.session.post.cards[self.ranks[rank.0 as usize] as usize]
    }

    /// The host of a rank, by name.
    pub fn host(&self, rank: Rank) -> &str {
        &self.card(rank).host
    }

    /// Whether two ranks share a kernel and its network interfaces.
    pub fn together(&self, a: Rank, b: Rank) -> bool {
        self.card(a).identity == self.card(b).identity
    }

    /// By which address this rank reaches another.
    pub(crate) fn address_of(&self, other: Rank, ip: Ip) -> Result<IpAddr> {
        if self.together(self.rank(), other) {
            return Ok(match ip {
                Ip::V4 => Ipv4Addr::LOCALHOST.into(),
                Ip::V6 => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let card = self.card(other);
        let dialled = self.session.post.dialled.map(|address| address.ip().to_canonical());
        // Who is on the coordinator's host is reached as the coordinator is.
        let known = card.seen.filter(|seen| !seen.is_loopback()).or(dialled);
        let known = known.filter(|known| !known.is_loopback() && known.is_ipv4() == (ip == Ip::V4));
        let known = known.or(if ip == Ip::V6 { card.ipv6.map(IpAddr::V6) } else { None });
        known.ok_or_else(|| {
            Error::unsupported(format!(
                "no {} address of {} is known on {}",
                ip.name(),
                card.host,
                self.host(self.rank())
            ))
        })
    }

    fn post(&self, to: Rank, step: Step, message: &[u8]) -> Result<()> {
        self.session.post.send(self.ranks[to.0 as usize], &[message, &[step as u8]].concat())
    }

    fn take_in(&self, from: Rank, step: Step) -> Result<Vec<u8>> {
        let mut message = self.session.post.receive(self.ranks[from.0 as usize]);
        match message.pop() {
            Some(found) if found == step as u8 => Ok(message),
            _ => Err(Error::fabric(format!("ranks {} and {from} have lost step", self.rank()))),
        }
    }

    /// Sends a message to one rank.
    pub fn send(&self, to: Rank, message: &[u8]) -> Result<()> {
        self.post(to, Step::Direct, message)
    }

    /// Waits for the next message that one rank sent.
    pub fn receive(&self, from: Rank) -> Result<Vec<u8>> {
        self.take_in(from, Step::Direct)
    }

    fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        (1..self.ranks.len() as u32).map(Rank)
    }

    fn part(&self, ranks: Vec<u32>) -> SocketTeam {
        let mine = self.ranks[self.me as usize];
        let me = ranks.iter().position(|rank| *rank == mine).unwrap_or(0) as u32;
        SocketTeam { session: Rc::clone(&self.session), ranks, me }
    }
}

/// A version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ip {
    #[default]
    V4,
    V6,
}

impl Ip {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Ip::V4 => "IPv4",
            Ip::V6 => "IPv6",
        }
    }
}

impl Team for SocketTeam {
    fn rank(&self) -> Rank {
        Rank(self.me)
    }

    fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn fabric(&self) -> Fabric {
        let kernel = rustix::system::uname();
        let [name, release] =
            [kernel.sysname(), kernel.release()].map(|part| part.to_string_lossy().into_owned());
        Fabric { name: "sockets", library: format!("sockets of {name} {release}") }
    }

    fn barrier(&self) -> Result<()> {
        self.gather(&[])?;
        self.broadcast(&mut [])
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        if self.me == 0 {
            return self.others().try_for_each(|rank| self.post(rank, Step::Broadcast, bytes));
        }
        let message = self.take_in(Rank(0), Step::Broadcast)?;
        if message.len() != bytes.len() {
            return Err(Error::fabric(format!("ranks 0 and {} have lost step", self.rank())));
        }
        bytes.copy_from_slice(&message);
        Ok(())
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        if self.me != 0 {
            return self.post(Rank(0), Step::Gather, mine).map(|()| None);
        }
        let mut all = vec![mine.to_vec()];
        for rank in self.others() {
            all.push(self.take_in(rank, Step::Gather)?);
        }
        Ok(Some(all))
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        let part = || Box::new(self.part(self.ranks[..ranks as usize].to_vec())) as Box<dyn Team>;
        Ok((self.me < ranks).then(part))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        let [mine, other] = [self.rank(), partner].map(|rank| self.ranks[rank.0 as usize]);
        Ok(Box::new(self.part(if first == partner { vec![other, mine] } else { vec![mine, other] })))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        self.barrier()
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        self.session.post.end_all(code);
        std::thread::sleep(LAST_WORD);
        std::process::exit(code.into())
    }
}
