//! Ranks of a session as the engine's team.

use std::{
    cell::RefCell,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use ombx_core::{
    error::{Error, Result},
    team::{Fabric, Team},
    unit::Rank,
};

use super::{
    connection::{Connection, IdleTask, OnEnd},
    protocol::Hello,
};
use crate::{
    control::Token,
    socket::{Ip, LinkOptions},
};

/// A rank that aborts waits for this time before it exits, so that its last message is sent.
const ABORT_DELAY: Duration = Duration::from_millis(100);

/// Ranks of a session, or some of them.
///
/// Control messages pass through the coordinator. Payload has separate connections, one for each case.
#[derive(Clone)]
pub struct SocketTeam {
    session: Rc<Session>,
    /// The number in the session of each rank of this team.
    ranks: Vec<u32>,
    own_rank: u32,
}

struct Session {
    connection: Connection,
    token: Token,
    link_options: RefCell<LinkOptions>,
}

/// Purpose of a message between ranks: its last byte, which detects ranks that are out of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Gather = 1,
    Broadcast = 2,
    Direct = 3,
}

impl SocketTeam {
    /// Joins a session as `rank` and waits until all ranks have joined.
    ///
    /// Tries the coordinator's addresses in order. `on_end` is called on another thread if the session ends before
    /// [`SocketTeam::leave`]; it should end this process.
    pub fn join(addresses: &[SocketAddr], token: Token, rank: u32, on_end: OnEnd) -> Result<SocketTeam> {
        let connection = Connection::join(addresses, &token, rank, on_end)?;
        let ranks = (0..connection.ranks.len() as u32).collect();
        let session = Session { connection, token, link_options: RefCell::default() };
        Ok(SocketTeam { session: Rc::new(session), ranks, own_rank: rank })
    }

    /// Leaves the session. Call this function when the work of this rank is done.
    pub fn leave(&self) {
        self.session.connection.leave();
    }

    /// Returns the token of the session.
    pub fn token(&self) -> &Token {
        &self.session.token
    }

    /// Returns how the next connections for payload are made.
    pub(crate) fn link_options(&self) -> LinkOptions {
        self.session.link_options.borrow().clone()
    }

    pub(crate) fn set_link_options(&self, options: LinkOptions) {
        *self.session.link_options.borrow_mut() = options;
    }

    pub(crate) fn set_idle_task(&self, task: Option<Rc<dyn IdleTask>>) {
        self.session.connection.set_idle_task(task);
    }

    fn hello(&self, rank: Rank) -> &Hello {
        &self.session.connection.ranks[self.ranks[rank.0 as usize] as usize]
    }

    /// Returns the host name of a rank.
    pub fn host(&self, rank: Rank) -> &str {
        &self.hello(rank).host
    }

    /// Returns whether two ranks share a kernel and its network interfaces.
    pub fn same_host(&self, a: Rank, b: Rank) -> bool {
        self.hello(a).identity == self.hello(b).identity
    }

    /// Returns the address at which this rank listens for another.
    pub(crate) fn listen_address(&self, other: Rank, ip: Ip) -> IpAddr {
        if self.same_host(self.rank(), other) { ip.loopback() } else { ip.unspecified() }
    }

    /// Returns the address at which this rank reaches another.
    pub(crate) fn address_of(&self, other: Rank, ip: Ip) -> Result<IpAddr> {
        if self.same_host(self.rank(), other) {
            return Ok(ip.loopback());
        }
        let hello = self.hello(other);
        let coordinator = self.session.connection.coordinator.map(|address| address.ip().to_canonical());
        // A rank on the coordinator's host has the coordinator's address.
        let known = hello.seen.filter(|seen| !seen.is_loopback()).or(coordinator);
        let known = known.filter(|known| !known.is_loopback() && known.is_ipv4() == (ip == Ip::V4));
        let known = known.or(if ip == Ip::V6 { hello.ipv6.map(IpAddr::V6) } else { None });
        known.ok_or_else(|| {
            let [from, to] = [self.rank(), other].map(|rank| self.host(rank));
            Error::unsupported(format!("no {} address of {to} is known on {from}", ip.name()))
        })
    }

    fn send_step(&self, to: Rank, step: Step, message: &[u8]) -> Result<()> {
        let to = self.ranks[to.0 as usize];
        self.session.connection.send(to, &[message, &[step as u8]].concat())
    }

    fn receive_step(&self, from: Rank, step: Step) -> Result<Vec<u8>> {
        let mut message = self.session.connection.receive(self.ranks[from.0 as usize]);
        match message.pop() {
            Some(found) if found == step as u8 => Ok(message),
            _ => Err(self.out_of_step(from)),
        }
    }

    fn out_of_step(&self, other: Rank) -> Error {
        Error::fabric(format!("ranks {} and {other} are out of step", self.rank()))
    }

    /// Sends a message to one rank.
    pub fn send(&self, to: Rank, message: &[u8]) -> Result<()> {
        self.send_step(to, Step::Direct, message)
    }

    /// Waits for the next message that one rank sends with [`SocketTeam::send`].
    pub fn receive(&self, from: Rank) -> Result<Vec<u8>> {
        self.receive_step(from, Step::Direct)
    }

    fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        (1..self.ranks.len() as u32).map(Rank)
    }

    fn subset(&self, ranks: Vec<u32>) -> SocketTeam {
        let mine = self.ranks[self.own_rank as usize];
        let own_rank = ranks.iter().position(|rank| *rank == mine).unwrap_or(0) as u32;
        SocketTeam { session: Rc::clone(&self.session), ranks, own_rank }
    }
}

impl Team for SocketTeam {
    fn rank(&self) -> Rank {
        Rank(self.own_rank)
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
        if self.own_rank == 0 {
            return self.others().try_for_each(|rank| self.send_step(rank, Step::Broadcast, bytes));
        }
        let message = self.receive_step(Rank(0), Step::Broadcast)?;
        if message.len() != bytes.len() {
            return Err(self.out_of_step(Rank(0)));
        }
        bytes.copy_from_slice(&message);
        Ok(())
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        if self.own_rank != 0 {
            return self.send_step(Rank(0), Step::Gather, mine).map(|()| None);
        }
        let mut all = vec![mine.to_vec()];
        for rank in self.others() {
            all.push(self.receive_step(rank, Step::Gather)?);
        }
        Ok(Some(all))
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        let subset = || Box::new(self.subset(self.ranks[..ranks as usize].to_vec())) as Box<dyn Team>;
        Ok((self.own_rank < ranks).then(subset))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        let [mine, other] = [self.rank(), partner].map(|rank| self.ranks[rank.0 as usize]);
        Ok(Box::new(self.subset(if first == partner { vec![other, mine] } else { vec![mine, other] })))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        self.barrier()
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        self.session.connection.end_all(code);
        std::thread::sleep(ABORT_DELAY);
        std::process::exit(code.into())
    }
}
