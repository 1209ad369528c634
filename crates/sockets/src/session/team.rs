//! Ranks of a session as the engine's team.

use std::{
    cell::RefCell,
    iter,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    time::Duration,
};

use ombx_core::{
    benchmark::{Chosen, ParameterValue as _},
    codec,
    error::{Error, Result},
    team::{BYTES_OF_TURN, EnteredBarrier, Fabric, Team, turns},
    unit::Rank,
};
use serde::{Serialize, de::DeserializeOwned};

use super::connection::{Connection, join_timeout};
use crate::{
    control::Token,
    options::LinkOptions,
    session::{
        connection::Hello,
        peers::{IdleTask, OnEnd},
    },
    socket::{IpVersion, ScopedIp},
};

/// A rank that aborts waits for this time before it exits, so that its last message is sent.
const ABORT_DELAY: Duration = Duration::from_millis(100);

/// Number of ranks to which one rank passes on a broadcast, and from which it collects a gather.
const BRANCHES: u64 = 32;

/// Ranks of a session, or some of them.
///
/// Control messages go from rank to rank, those of all ranks along a tree. The coordinator relays what cannot go directly.
/// Payload has separate connections, one for each case.
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
    cpus: RefCell<Cpus>,
}

/// CPUs of a rank that is bound to one of them; empty if it is not bound.
#[derive(Debug, Clone, Default)]
pub struct Cpus {
    /// Its share of the cores, which no other rank uses.
    pub own: Vec<u32>,
    /// All that it could use before it was bound.
    pub all: Vec<u32>,
}

impl Cpus {
    /// Returns the CPUs of each of some threads: a core of its own, or all where there are more threads than own cores.
    fn of_threads(&self, threads: u32) -> Vec<Vec<u32>> {
        match self.own.len() {
            0 => Vec::new(),
            own if own < threads as usize => vec![self.all.clone()],
            _ => self.own.iter().map(|cpu| vec![*cpu]).collect(),
        }
    }
}

/// Purpose of a message between ranks: its last byte, which detects ranks that are out of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Gather = 1,
    Broadcast = 2,
    Direct = 3,
    Barrier = 4,
    /// A rank and all below it in the tree have entered a sleeping barrier.
    Entered = 5,
    /// All ranks have entered it.
    Released = 6,
}

/// Returns whether a message is one of a sleeping barrier. A rank that has entered one may exchange other messages before it is complete.
fn is_of_sleeping_barrier(message: &[u8]) -> bool {
    message.last().is_some_and(|step| [Step::Entered as u8, Step::Released as u8].contains(step))
}

fn is_of_other_step(message: &[u8]) -> bool {
    !is_of_sleeping_barrier(message)
}

impl Step {
    /// Returns which messages are in order with those of this step.
    fn messages(self) -> fn(&[u8]) -> bool {
        if is_of_sleeping_barrier(&[self as u8]) { is_of_sleeping_barrier } else { is_of_other_step }
    }
}

impl SocketTeam {
    /// Joins a session as `rank` and waits until all ranks have joined, for at most a minute.
    ///
    /// Tries the coordinator's addresses in order. `on_end` is called on another thread if the session ends before
    /// [`SocketTeam::leave`]; it should end this process.
    pub fn join(addresses: &[SocketAddr], token: Token, rank: u32, on_end: OnEnd) -> Result<SocketTeam> {
        SocketTeam::join_within(join_timeout(0), addresses, token, rank, on_end)
    }

    /// Joins a session like [`SocketTeam::join`], within another time.
    pub fn join_within(
        limit: Duration,
        addresses: &[SocketAddr],
        token: Token,
        rank: u32,
        on_end: OnEnd,
    ) -> Result<SocketTeam> {
        let connection = Connection::join(addresses, &token, rank, limit, on_end)?;
        let ranks = (0..connection.ranks.len() as u32).collect();
        let session =
            Session { connection, token, link_options: RefCell::default(), cpus: RefCell::default() };
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

    /// Sets the CPUs of the threads of several streams.
    pub fn set_cpus(&self, cpus: Cpus) {
        *self.session.cpus.borrow_mut() = cpus;
    }

    /// Returns the CPUs of each of some threads, taken in turn.
    pub(crate) fn cpus_of_threads(&self, threads: u32) -> Vec<Vec<u32>> {
        self.session.cpus.borrow().of_threads(threads)
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
    pub(crate) fn listen_address(&self, other: Rank, ip: IpVersion) -> IpAddr {
        if self.same_host(self.rank(), other) { ip.loopback() } else { ip.unspecified() }
    }

    /// Returns the address at which this rank reaches another.
    pub(crate) fn address_of(&self, other: Rank, ip: IpVersion) -> Result<ScopedIp> {
        if self.same_host(self.rank(), other) {
            return Ok(ip.loopback().into());
        }
        let hello = self.hello(other);
        let Connection { coordinator, links, .. } = &self.session.connection;
        let is_at_coordinator = hello.seen.is_none_or(|seen| seen.ip().is_loopback());
        let known = if is_at_coordinator { *coordinator } else { links.address_of(hello) };
        let known =
            known.filter(|known| !known.ip().is_loopback() && known.ip().is_ipv4() == (ip == IpVersion::V4));
        let known =
            known.or(if ip == IpVersion::V6 { hello.ipv6.map(IpAddr::V6).map(ScopedIp::from) } else { None });
        known.ok_or_else(|| {
            let [from, to] = [self.rank(), other].map(|rank| self.host(rank));
            Error::unsupported(format!("no IPv{} address of {to} is known on {from}", ip.name()))
        })
    }

    /// Chooses the version of the internet protocol that the addresses of all ranks have, unless the user has chosen one: IPv6 if no rank
    /// was reached by IPv4. Every rank chooses the same.
    pub fn choose_ip(&self, chosen: &mut Chosen) {
        if !chosen.has(IpVersion::PARAMETER) && is_of_ipv6(&self.session.connection.ranks) {
            chosen.choose([IpVersion::V6]);
        }
    }

    fn send_step(&self, to: Rank, step: Step, message: &[u8]) -> Result<()> {
        let to = self.ranks[to.0 as usize];
        self.session.connection.send(to, &[message, &[step as u8]].concat())
    }

    fn receive_step(&self, from: Rank, step: Step) -> Result<Vec<u8>> {
        let number = self.ranks[from.0 as usize];
        self.of_step(from, step, self.session.connection.receive(number, step.messages()))
    }

    fn of_step(&self, from: Rank, step: Step, mut message: Vec<u8>) -> Result<Vec<u8>> {
        match message.pop() {
            Some(found) if found == step as u8 => Ok(message),
            _ => Err(self.out_of_step(from)),
        }
    }

    /// Returns whether a message of a step has arrived, and takes it.
    fn takes_step(&self, from: Rank, step: Step) -> Result<bool> {
        match self.session.connection.take(self.ranks[from.0 as usize], step.messages()) {
            Some(message) => self.of_step(from, step, message).map(|_| true),
            None => Ok(false),
        }
    }

    /// Waits until all ranks have sent the step `up` to their parents, then passes on the step `down` from rank 0.
    fn meet(&self, up: Step, down: Step) -> Result<()> {
        self.children().try_for_each(|child| self.receive_step(child, up).map(drop))?;
        if let Some(parent) = self.parent() {
            self.send_step(parent, up, &[])?;
            self.receive_step(parent, down)?;
        }
        self.children().try_for_each(|child| self.send_step(child, down, &[]))
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

    /// Sends a message to one rank.
    pub(crate) fn send_message(&self, to: Rank, message: &impl Serialize) -> Result<()> {
        self.send(to, &codec::encode(message))
    }

    /// Waits for the next message of one rank. `what` describes it for the error of another build.
    pub(crate) fn receive_message<M: DeserializeOwned>(&self, from: Rank, what: &str) -> Result<M> {
        codec::decode(&self.receive(from)?)
            .ok_or_else(|| Error::fabric(format!("rank {from} sent no {what}")))
    }

    /// Returns the rank before this one on the way to rank 0; `None` for rank 0.
    fn parent(&self) -> Option<Rank> {
        self.own_rank.checked_sub(1).map(|before| Rank(before / BRANCHES as u32))
    }

    /// Returns the ranks whose parent is this one.
    fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let first = u64::from(self.own_rank) * BRANCHES + 1;
        (first..(first + BRANCHES).min(self.ranks.len() as u64)).map(|rank| Rank(rank as u32))
    }

    /// Gathers the parts of all ranks on rank 0, which gets its own part and a message of each child; returns `None` on other ranks.
    fn gather_parts(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let own = part_of(self.own_rank, mine);
        let mut received = self.children().map(|child| self.receive_step(child, Step::Gather));
        let Some(parent) = self.parent() else {
            return iter::once(Ok(own)).chain(received).collect::<Result<_>>().map(Some);
        };
        let mut all = own;
        received.try_for_each(|message| message.map(|message| all.extend(message)))?;
        self.send_step(parent, Step::Gather, &all).map(|()| None)
    }

    /// Returns the bytes of each rank of a gather, in rank order.
    fn parts_of_all<'m>(&self, messages: &'m [Vec<u8>]) -> Result<Vec<&'m [u8]>> {
        parts_of(messages, self.ranks.len()).ok_or_else(|| self.out_of_step(Rank(0)))
    }

    fn part(&self, ranks: Vec<u32>) -> SocketTeam {
        let mine = self.ranks[self.own_rank as usize];
        let own_rank = ranks.iter().position(|rank| *rank == mine).unwrap_or(0) as u32;
        SocketTeam { session: Rc::clone(&self.session), ranks, own_rank }
    }
}

/// Returns whether ranks have addresses of IPv6 alone. Of ranks on several hosts, those on the coordinator's host say nothing: their
/// connection to it stays on the host.
fn is_of_ipv6(ranks: &[Hello]) -> bool {
    let seen: Vec<IpAddr> = ranks.iter().filter_map(|hello| hello.seen).map(ScopedIp::ip).collect();
    let of_hosts: Vec<&IpAddr> = seen.iter().filter(|ip| !ip.is_loopback()).collect();
    let decisive = if of_hosts.is_empty() { seen.iter().collect() } else { of_hosts };
    !decisive.is_empty() && decisive.iter().all(|ip| ip.is_ipv6())
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
        self.meet(Step::Barrier, Step::Broadcast)
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        if let Some(parent) = self.parent() {
            let message = self.receive_step(parent, Step::Broadcast)?;
            if message.len() != bytes.len() {
                return Err(self.out_of_step(parent));
            }
            bytes.copy_from_slice(&message);
        }
        self.children().try_for_each(|child| self.send_step(child, Step::Broadcast, bytes))
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let Some(messages) = self.gather_parts(mine)? else { return Ok(None) };
        let parts = self.parts_of_all(&messages)?;
        Ok(Some(parts.into_iter().map(<[u8]>::to_vec).collect()))
    }

    fn gather_each(&self, mine: &[u8], take: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        let team: &dyn Team = self;
        let lengths: Vec<u64> = team.gather_messages(&(mine.len() as u64))?.unwrap_or_default();
        let starts: Vec<u32> = team.broadcast_message(turns(&lengths, BYTES_OF_TURN))?;
        for (turn, start) in starts.iter().enumerate() {
            let end = starts.get(turn + 1).copied().unwrap_or(u32::MAX);
            let sent = if (*start..end).contains(&self.own_rank) { mine } else { &[] };
            let Some(messages) = self.gather_parts(sent)? else { continue };
            for bytes in self.parts_of_all(&messages)?.into_iter().filter(|bytes| !bytes.is_empty()) {
                take(bytes.to_vec())?;
            }
        }
        Ok(())
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        let subset = || Box::new(self.part(self.ranks[..ranks as usize].to_vec())) as Box<dyn Team>;
        Ok((self.own_rank < ranks).then(subset))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        let [mine, other] = [self.rank(), partner].map(|rank| self.ranks[rank.0 as usize]);
        Ok(Box::new(self.part(if first == partner { vec![other, mine] } else { vec![mine, other] })))
    }

    fn subset(&self, ranks: &[Rank]) -> Result<Option<Box<dyn Team>>> {
        let subset = || {
            let ranks = ranks.iter().map(|rank| self.ranks[rank.0 as usize]).collect();
            Box::new(self.part(ranks)) as Box<dyn Team>
        };
        Ok(ranks.contains(&self.rank()).then(subset))
    }

    fn enter_barrier(&self) -> Result<Box<dyn EnteredBarrier + '_>> {
        let parent = self.parent().map(|parent| (parent, Step::Released));
        let missing = parent.into_iter().chain(self.children().map(|child| (child, Step::Entered))).collect();
        let entered = Entered { team: self, missing };
        entered.pass_on()?;
        Ok(Box::new(entered))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        self.meet(Step::Entered, Step::Released)
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        self.session.connection.end_all(code);
        std::thread::sleep(ABORT_DELAY);
        std::process::exit(code.into())
    }
}

/// A sleeping barrier that a rank has entered. The rank passes on its messages when it asks whether all have entered.
struct Entered<'t> {
    team: &'t SocketTeam,
    /// Messages that are missing, the last one first: those of the children, then that of the parent.
    missing: Vec<(Rank, Step)>,
}

impl Entered<'_> {
    /// Tells the parent that all below it have entered, or the children that all ranks have.
    fn pass_on(&self) -> Result<()> {
        match self.missing[..] {
            [] => self.team.children().try_for_each(|child| self.team.send_step(child, Step::Released, &[])),
            [(parent, Step::Released)] => self.team.send_step(parent, Step::Entered, &[]),
            _ => Ok(()),
        }
    }
}

impl EnteredBarrier for Entered<'_> {
    fn is_complete(&mut self) -> Result<bool> {
        while let Some((rank, step)) = self.missing.last() {
            if !self.team.takes_step(*rank, *step)? {
                return Ok(false);
            }
            self.missing.pop();
            self.pass_on()?;
        }
        Ok(true)
    }
}

/// Returns the bytes of one rank in a gather: its number, their length, and the bytes.
fn part_of(rank: u32, bytes: &[u8]) -> Vec<u8> {
    [&rank.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

/// Splits the messages of a gather into the parts of the ranks; `None` if one is malformed or missing.
fn parts_of(messages: &[Vec<u8>], ranks: usize) -> Option<Vec<&[u8]>> {
    let mut parts = vec![None; ranks];
    for message in messages {
        let mut bytes = &message[..];
        while let Some((rank, rest)) = bytes.split_first_chunk::<4>() {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            *parts.get_mut(u32::from_le_bytes(*rank) as usize)? = Some(part);
            bytes = rest;
        }
        if !bytes.is_empty() {
            return None;
        }
    }
    parts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_cores_of_their_own_or_share_all_cpus() {
        let cpus = Cpus { own: vec![0, 4], all: vec![0, 1, 2, 3, 4, 5] };
        assert_eq!(cpus.of_threads(2), [[0], [4]]);
        assert_eq!(cpus.of_threads(3), [[0, 1, 2, 3, 4, 5]]);
        assert!(Cpus::default().of_threads(2).is_empty());
    }

    #[test]
    fn ranks_without_an_address_of_ipv4_use_ipv6() {
        let is_of_ipv6 = |seen: &[&str]| {
            let hello = |ip: &&str| Hello { seen: ip.parse().ok(), ..Hello::of_this_process(0, 7) };
            is_of_ipv6(&seen.iter().map(hello).collect::<Vec<_>>())
        };
        for six in [&["::1", "::1"][..], &["127.0.0.1", "fd00::2"], &["::1", "fe80::2%1", "fd00::3"]] {
            assert!(is_of_ipv6(six), "{six:?}");
        }
        for four in
            [&["127.0.0.1", "127.0.0.1"][..], &["::1", "10.0.0.2"], &["::1", "10.0.0.2", "fd00::3"], &[]]
        {
            assert!(!is_of_ipv6(four), "{four:?}");
        }
    }

    #[test]
    fn parts_are_in_the_order_of_ranks_and_none_is_missing() {
        let mut messages = vec![[part_of(1, b"one"), part_of(0, b"")].concat(), part_of(2, &[2; 300])];
        assert_eq!(parts_of(&messages, 3).unwrap(), [&b""[..], b"one", &[2; 300]]);
        assert_eq!(parts_of(&messages, 4), None);
        assert_eq!(parts_of(&messages[..1], 3), None);
        for message in [1, 0] {
            while messages[message].pop().is_some() {
                assert_eq!(parts_of(&messages, 3), None);
            }
        }
        assert_eq!(parts_of(&[part_of(7, b"")], 1), None);
    }
}
