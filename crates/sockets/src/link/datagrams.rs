//! UDP between two ranks: lost messages are sent again and counted.
//!
//! A datagram is a [`Header`] of 8 bytes and a message. Messages have numbers. One that arrives early is stored at its
//! place, and the missing ones are requested. A rank that receives nothing for a while repeats a request: for the messages
//! from the first missing one on, or for an acknowledgement. While a rank waits for its coordinator, an [`Responder`]
//! answers. So all data arrives, the time of a sample contains the cost of its losses, and `lost_messages` counts them.
//!
//! The messages of a window go in [trains](Trains). One that arrives is received into the places of the next messages of the window, which
//! are all free then. Other datagrams are sorted by their headers.

use std::{
    array,
    cell::{Cell, RefCell},
    iter,
    net::UdpSocket,
    ops::Range,
    rc::Rc,
    time::Duration,
};

use ombx_core::{
    benchmark::{Context, Figure, Figures, payload::Slots},
    error::{Error, Result},
    two_sided::pattern::Link,
    unit::Rank,
};
use ombx_host::since::Since;
use rustix::{
    io::Errno,
    net::{
        RecvFlags, SendFlags, recv, send,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use crate::{
    control::Token,
    link::{
        CONNECT_TIMEOUT, connect_datagrams, datagram_socket,
        trains::{self, MOST, MOST_RECEIVED_BYTES, Trains},
        transfer::{Buffer, closed, failed},
    },
    session::{IdleTask, SocketTeam},
};

/// A request is repeated after this time, or after three round trips if that is longer.
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);
/// After this number of requests without an answer the connection has failed.
const MAX_REQUESTS: u32 = 500;

/// A UDP socket that is connected to one peer.
pub(crate) struct Datagrams {
    team: SocketTeam,
    peer: Rank,
    endpoint: Rc<Endpoint>,
    outgoing: Rc<Buffer>,
    incoming: Buffer,
    /// Headers of the datagrams that a call has received into the places of the next messages.
    heads: [[u8; LENGTH]; MOST],
    /// Datagrams that are not the next messages, or arrive while some are early.
    unsorted: Buffer,
    /// Whether a message arrived early, by its number modulo [`MAX_AHEAD`].
    early: Vec<bool>,
    /// Messages that arrived early and follow a missing one.
    ahead: u64,
    /// Messages before this number were requested or have arrived.
    requested: u64,
    /// Messages before this number belong to windows that were received.
    received: u64,
    /// Number of the last acknowledgement.
    acknowledged: u64,
}

impl Datagrams {
    /// Receives one datagram: the next message into its place, others unsorted. Returns whether one has arrived before the socket has
    /// waited for [`REQUEST_INTERVAL`].
    #[inline(always)]
    fn receive_one(&mut self) -> Result<bool> {
        if self.ahead > 0 {
            return self.receive_unsorted();
        }
        let Datagrams { endpoint, incoming, heads: [head, ..], .. } = self;
        let wanted = endpoint.wanted.get();
        let place = endpoint.message(wanted);
        let whole = LENGTH + place.len();
        let arrived = trains::receive_one(&endpoint.socket, head, &mut incoming.bytes_mut()[place]);
        let Some(bytes) = received(arrived)? else { return Ok(false) };
        if bytes == whole && *head == Header::of_message(wanted).encode() {
            endpoint.trains.count_received(1);
            endpoint.wanted.set(wanted + 1);
        } else {
            self.gather(wanted, 0..1, bytes);
            self.sort(0..bytes, 0)?;
        }
        Ok(true)
    }

    /// Receives a train like [`Datagrams::receive_one`]. What follows the messages of this window is unsorted.
    #[inline(always)]
    fn receive_train(&mut self) -> Result<bool> {
        if self.ahead > 0 {
            return self.receive_unsorted();
        }
        let Datagrams { endpoint, incoming, heads, unsorted, received: end, .. } = self;
        let wanted = endpoint.wanted.get();
        let length = LENGTH + endpoint.slots.bytes as usize;
        let most = endpoint.trains.most_received().min((*end - wanted) as usize);
        let places = places(incoming.bytes_mut(), endpoint.slots, wanted);
        let rest = &mut unsorted.bytes_mut()[most * length..];
        let arrived = trains::receive(&endpoint.socket, &mut heads[..most], places, rest);
        let Some(bytes) = received(arrived)? else { return Ok(false) };
        let whole = (bytes / length).min(most);
        let is_next = |(number, head): &(u64, &[u8; LENGTH])| **head == Header::of_message(*number).encode();
        let next = (wanted..).zip(&heads[..whole]).take_while(is_next).count();
        endpoint.wanted.set(wanted + next as u64);
        if next * length == bytes {
            endpoint.trains.count_received(next);
        } else {
            self.gather(wanted, next..most, bytes);
            self.sort(next * length..bytes, next)?;
        }
        Ok(true)
    }

    /// Receives unsorted datagrams, and sorts them.
    fn receive_unsorted(&mut self) -> Result<bool> {
        let arrived = recv(&self.endpoint.socket, self.unsorted.bytes_mut(), RecvFlags::empty());
        let Some(bytes) = received(arrived.map(|(bytes, _)| bytes))? else { return Ok(false) };
        self.sort(0..bytes, 0)?;
        Ok(true)
    }

    /// Copies some datagrams of the `bytes` that have arrived to the unsorted ones. The first of all is in the place of message `first`.
    #[cold]
    fn gather(&mut self, first: u64, datagrams: Range<usize>, bytes: usize) {
        let Datagrams { endpoint, incoming, unsorted, heads, .. } = self;
        let length = LENGTH + endpoint.slots.bytes as usize;
        let all = unsorted.bytes_mut()[..bytes].chunks_mut(length).enumerate();
        for (at, to) in all.take(datagrams.end).skip(datagrams.start) {
            let (to_head, to_message) = to.split_at_mut(LENGTH.min(to.len()));
            to_head.copy_from_slice(&heads[at][..to_head.len()]);
            let from = endpoint.message(first + at as u64).start;
            to_message.copy_from_slice(&incoming.bytes()[from..from + to_message.len()]);
        }
    }

    /// Receives until all messages of the window have arrived.
    #[inline(always)]
    fn receive_window(&mut self) -> Result<()> {
        if self.endpoint.trains.most_received() == 1 {
            self.repeat(Datagrams::receive_one)
        } else {
            self.repeat(Datagrams::receive_train)
        }
    }

    #[inline(always)]
    fn repeat(&mut self, receive: impl Fn(&mut Datagrams) -> Result<bool>) -> Result<()> {
        let mut requests = 0;
        while self.endpoint.wanted.get() < self.received {
            let wanted = self.endpoint.wanted.get();
            if !receive(self)? {
                requests += 1;
                self.request(Header::new(DatagramKind::Request, wanted, 0), requests)?;
            } else if self.endpoint.wanted.get() > wanted {
                requests = 0;
            }
        }
        Ok(())
    }

    /// Handles unsorted datagrams: stores messages in their places and answers the others. The call that received them has also received
    /// the next `messages`.
    #[cold]
    fn sort(&mut self, arrived: Range<usize>, mut messages: usize) -> Result<()> {
        let mut at = arrived.start;
        while let Some(datagram) = self.endpoint.datagram(&self.unsorted.bytes()[..arrived.end], at) {
            let Datagram { header, message } = datagram;
            at = message.end;
            match header.kind {
                DatagramKind::Message => {
                    self.store(header.number, message)?;
                    messages += 1;
                }
                DatagramKind::Acknowledgement if header.number > self.endpoint.next.get() => {}
                DatagramKind::Acknowledgement => self.acknowledged = self.acknowledged.max(header.number),
                DatagramKind::Hello | DatagramKind::Request => {
                    self.endpoint.answer(header, self.outgoing.bytes())?
                }
            }
        }
        if messages > 0 {
            self.endpoint.trains.count_received(messages);
        }
        Ok(())
    }

    /// Stores an unsorted message in its place. Requests the messages before it that are missing.
    fn store(&mut self, number: u64, from: Range<usize>) -> Result<()> {
        let wanted = self.endpoint.wanted.get();
        // All messages of a window with one buffer share a slot.
        let most = match u64::from(self.endpoint.slots.count) {
            1 => MAX_AHEAD,
            count => MAX_AHEAD.min(count),
        };
        let early = &mut self.early[(number % MAX_AHEAD) as usize];
        if number < wanted || number - wanted >= most || std::mem::replace(early, true) {
            return Ok(());
        }
        self.ahead += 1;
        let place = self.endpoint.message(number);
        self.incoming.bytes_mut()[place].copy_from_slice(&self.unsorted.bytes()[from]);
        let first = wanted.max(self.requested);
        self.requested = self.requested.max(number + 1);
        if first < number {
            self.endpoint.lost.set(self.endpoint.lost.get() + number - first);
            self.endpoint.send_header(Header::new(DatagramKind::Request, first, number - first))?;
        }
        self.skip_early();
        Ok(())
    }

    /// Continues after the messages that have arrived early.
    fn skip_early(&mut self) {
        loop {
            let wanted = self.endpoint.wanted.get();
            let early = &mut self.early[(wanted % MAX_AHEAD) as usize];
            if !std::mem::take(early) {
                return;
            }
            self.ahead -= 1;
            self.endpoint.wanted.set(wanted + 1);
        }
    }

    #[cold]
    fn request(&mut self, header: Header, count: u32) -> Result<()> {
        if count >= MAX_REQUESTS {
            return Err(failed(Errno::AGAIN));
        }
        self.endpoint.send_header(header)
    }

    /// Waits for the other end; returns the time of a round trip.
    fn handshake(&self, peer: &str) -> Result<Duration> {
        let since = Since::now();
        let mut datagram = [0; LENGTH + Token::BYTES];
        while since.elapsed() < CONNECT_TIMEOUT {
            let sent = Since::now();
            self.endpoint.send_hello(0)?;
            while let Ok((bytes, _)) = recv(&self.endpoint.socket, &mut datagram, RecvFlags::empty()) {
                let (header, token) = datagram.split_at(LENGTH);
                let header = Header::decode(header.try_into().unwrap_or_default());
                if bytes == datagram.len()
                    && header.kind == DatagramKind::Hello
                    && self.endpoint.token.is(token)
                {
                    if header.count == 0 {
                        self.endpoint.send_hello(1)?;
                    }
                    return Ok(sent.elapsed());
                }
            }
        }
        Err(Error::unsupported(format!(
            "no datagram of {peer} arrived within {} s",
            CONNECT_TIMEOUT.as_secs()
        )))
    }
}

/// Returns the number of the first message from a random one. It is below 2^38, so that 2^39 messages can follow before their numbers exceed
/// the 40 bits of a header.
fn first_number(random: u64) -> u64 {
    random >> 26
}

impl Link for Datagrams {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &SocketTeam = cx.fabric()?;
        let options = team.link_options();
        let single = options.one_stream("udp");
        let socket = cx.agree(single.and_then(|()| datagram_socket(cx, &options, slots, LENGTH)))?;
        let length = LENGTH + slots.bytes as usize;
        let numbers = connect_datagrams(cx, &options, &socket, REQUEST_INTERVAL)?;
        let [first, of_peer] = numbers.map(first_number);
        let [next, wanted, lost] = [first, of_peer, 0].map(Cell::new);
        let trains = Trains::enable(&socket, slots, length, LENGTH + Token::BYTES, options.offload);
        let endpoint = Rc::new(Endpoint { socket, token: *team.token(), slots, trains, next, wanted, lost });
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total()));
        let link = Datagrams {
            team: team.clone(),
            peer: cx.peer,
            endpoint,
            outgoing: Rc::new(outgoing),
            incoming,
            heads: [[0; LENGTH]; MOST],
            unsorted: unsorted_buffer(),
            early: vec![false; MAX_AHEAD as usize],
            ahead: 0,
            requested: of_peer,
            received: of_peer,
            acknowledged: first,
        };
        let met = link.handshake(&format!("rank {}", cx.peer)).and_then(|round_trip| {
            let interval = REQUEST_INTERVAL.max(3 * round_trip).min(Duration::from_secs(2));
            set_socket_timeout(&link.endpoint.socket, Timeout::Recv, Some(interval)).map_err(failed)
        });
        link.answer_while_idle();
        cx.agree(met)?;
        Ok(link)
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        let number = self.endpoint.next.get();
        self.endpoint.next.set(number + 1);
        self.endpoint.send_train(number..number + 1, self.outgoing.bytes())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.received += 1;
        self.receive_window()
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        let first = self.endpoint.next.get();
        let end = first + u64::from(self.endpoint.slots.count);
        self.endpoint.next.set(end);
        self.endpoint.send_messages(first..end, self.outgoing.bytes())
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.received += u64::from(self.endpoint.slots.count);
        self.receive_window()
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.push()?;
        self.pull()
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.endpoint.send_header(Header::new(DatagramKind::Acknowledgement, self.endpoint.wanted.get(), 0))
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let sent = self.endpoint.next.get();
        let mut requests = 0;
        while self.acknowledged < sent {
            // The places of messages are not free: all messages of the window have arrived.
            if !self.receive_unsorted()? {
                requests += 1;
                self.request(Header::new(DatagramKind::Request, sent, ACKNOWLEDGEMENT), requests)?;
            }
        }
        Ok(())
    }

    fn figures(&mut self) -> Result<Figures> {
        let lost = ("lost_messages".to_owned(), Figure::Value(self.endpoint.lost.get() as f64));
        self.team.send_message(self.peer, &self.endpoint.trains.receives())?;
        let receives = self.team.receive_message(self.peer, "number of calls")?;
        Ok(self.endpoint.trains.figures(receives).into_iter().chain([lost]).collect())
    }

    fn outgoing(&mut self) -> &mut [u8] {
        // The responder sends from this buffer: it stops while the buffer changes, until `incoming` is called.
        self.team.set_idle_task(None);
        match Rc::get_mut(&mut self.outgoing) {
            Some(buffer) => buffer.bytes_mut(),
            None => &mut [],
        }
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.answer_while_idle();
        self.incoming.bytes_mut()
    }
}

/// Returns the bytes that a call received, none after a signal; `None` if the socket has waited for [`REQUEST_INTERVAL`].
#[inline(always)]
fn received(result: rustix::io::Result<usize>) -> Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Errno::INTR) => Ok(Some(0)),
        Err(Errno::AGAIN) => Ok(None),
        Err(Errno::CONNREFUSED) => Err(closed()),
        Err(errno) => Err(failed(errno)),
    }
}

/// Returns a buffer for everything that a call may receive.
fn unsorted_buffer() -> Buffer {
    Buffer::touched(MOST_RECEIVED_BYTES as u64)
}

/// Returns the places of the messages from number `first` on, each once.
#[inline(always)]
fn places(incoming: &mut [u8], slots: Slots, first: u64) -> impl Iterator<Item = &mut [u8]> {
    let start = slots.offset((first % u64::from(slots.count)) as u32);
    let (before, from) = incoming.split_at_mut(start);
    let (stride, bytes) = (slots.stride as usize, slots.bytes as usize);
    from.chunks_mut(stride).chain(before.chunks_mut(stride)).map(move |place| &mut place[..bytes])
}

impl Datagrams {
    /// Lets a [`Responder`] answer the other end while this rank waits for its coordinator.
    fn answer_while_idle(&self) {
        let responder = Responder {
            endpoint: Rc::clone(&self.endpoint),
            outgoing: Rc::clone(&self.outgoing),
            arrived: RefCell::new(unsorted_buffer()),
        };
        self.team.set_idle_task(Some(Rc::new(responder)));
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.team.set_idle_task(None);
    }
}

/// Length of a header in bytes.
const LENGTH: usize = 8;

/// The kind of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatagramKind {
    /// The message with this number.
    Message,
    /// All messages before this number have arrived.
    Acknowledgement,
    /// Asks for `count` messages from this number on; 0 asks for all, [`ACKNOWLEDGEMENT`] for an acknowledgement.
    Request,
    /// Carries the token when a link is opened. Count 0 asks for an answer; count 1 is the answer.
    Hello,
}

/// Kind (2 bits), count (22 bits) and number (40 bits), little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    kind: DatagramKind,
    count: u64,
    number: u64,
}

/// Count of a [`DatagramKind::Request`] that asks for an acknowledgement.
const ACKNOWLEDGEMENT: u64 = (1 << 22) - 1;

impl Header {
    #[inline(always)]
    fn new(kind: DatagramKind, number: u64, count: u64) -> Header {
        Header { kind, count, number }
    }

    #[inline(always)]
    fn of_message(number: u64) -> Header {
        Header::new(DatagramKind::Message, number, 0)
    }

    #[inline(always)]
    fn encode(self) -> [u8; LENGTH] {
        (self.number << 24 | self.count.min(ACKNOWLEDGEMENT) << 2 | self.kind as u64).to_le_bytes()
    }

    #[inline(always)]
    fn decode(bytes: [u8; LENGTH]) -> Header {
        let header = u64::from_le_bytes(bytes);
        let kind = match header & 3 {
            0 => DatagramKind::Message,
            1 => DatagramKind::Acknowledgement,
            2 => DatagramKind::Request,
            _ => DatagramKind::Hello,
        };
        Header { kind, count: header >> 2 & ACKNOWLEDGEMENT, number: header >> 24 }
    }
}

/// A datagram among those that have arrived.
struct Datagram {
    header: Header,
    /// Place of what follows its header.
    message: Range<usize>,
}

/// Maximum number of messages that may arrive before a missing one.
const MAX_AHEAD: u64 = 4096;

/// State that a link and its [`Responder`] share.
struct Endpoint {
    socket: UdpSocket,
    token: Token,
    slots: Slots,
    trains: Trains,
    /// Number of the next message to send.
    next: Cell<u64>,
    /// Number of the first message that has not arrived.
    wanted: Cell<u64>,
    /// Messages that were sent again, as far as this end knows.
    lost: Cell<u64>,
}

impl Endpoint {
    #[inline(always)]
    fn message(&self, number: u64) -> std::ops::Range<usize> {
        let start = self.slots.offset((number % u64::from(self.slots.count)) as u32);
        start..start + self.slots.bytes as usize
    }

    /// Returns the datagram at a place of those that have arrived; `None` at their end and for a message that is cut off, which is lost.
    fn datagram(&self, arrived: &[u8], at: usize) -> Option<Datagram> {
        let header = Header::decode(*arrived.get(at..)?.first_chunk()?);
        let start = at + LENGTH;
        let end = match header.kind {
            DatagramKind::Message => start + self.slots.bytes as usize,
            DatagramKind::Hello => arrived.len().min(start + Token::BYTES),
            DatagramKind::Acknowledgement | DatagramKind::Request => start,
        };
        (end <= arrived.len()).then_some(Datagram { header, message: start..end })
    }

    /// Sends messages, in as few trains as possible.
    #[inline(always)]
    fn send_messages(&self, numbers: Range<u64>, outgoing: &[u8]) -> Result<()> {
        let mut next = numbers.start;
        while next < numbers.end {
            let end = numbers.end.min(next + self.trains.most_sent() as u64);
            self.send_train(next..end, outgoing)?;
            next = end;
        }
        Ok(())
    }

    /// Sends messages with one call, at most [`MOST`].
    #[inline(always)]
    fn send_train(&self, numbers: Range<u64>, outgoing: &[u8]) -> Result<()> {
        #[cfg(test)]
        if crate::link::tests::loses() {
            // The first datagram is lost.
            let rest = numbers.start + 1..numbers.end;
            return if rest.is_empty() { Ok(()) } else { self.send_train(rest, outgoing) };
        }
        let messages = (numbers.end - numbers.start) as usize;
        if messages == 1 {
            let head = Header::of_message(numbers.start).encode();
            let message = &outgoing[self.message(numbers.start)];
            return self.trains.send(&self.socket, &[head], [message].into_iter());
        }
        let heads: [_; MOST] = array::from_fn(|at| Header::of_message(numbers.start + at as u64).encode());
        let messages_of = numbers.map(|number| &outgoing[self.message(number)]);
        self.trains.send(&self.socket, &heads[..messages], messages_of)
    }

    fn send_header(&self, header: Header) -> Result<()> {
        #[cfg(test)]
        if crate::link::tests::loses() {
            return Ok(());
        }
        match send(&self.socket, &header.encode(), SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn send_hello(&self, count: u64) -> Result<()> {
        let hello = [&Header::new(DatagramKind::Hello, 0, count).encode()[..], self.token.bytes()].concat();
        match send(&self.socket, &hello, SendFlags::NOSIGNAL) {
            // The other end may have no socket yet.
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN | Errno::CONNREFUSED) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Answers a request of the other end.
    fn answer(&self, request: Header, outgoing: &[u8]) -> Result<()> {
        match request {
            Header { kind: DatagramKind::Hello, count: 0, .. } => self.send_hello(1),
            Header { kind: DatagramKind::Request, count: ACKNOWLEDGEMENT, number } => {
                match number.checked_sub(self.wanted.get()) {
                    // Some of the messages that it has sent are missing.
                    Some(missing @ 1..) => self.send_header(Header::new(
                        DatagramKind::Request,
                        self.wanted.get(),
                        missing.min(MAX_AHEAD),
                    )),
                    _ => self.send_header(Header::new(DatagramKind::Acknowledgement, self.wanted.get(), 0)),
                }
            }
            Header { kind: DatagramKind::Request, count, number } => {
                let sent = self.next.get();
                let end = if count == 0 { sent } else { sent.min(number.saturating_add(count)) };
                // Older messages have arrived, and the buffer does not hold them any more.
                let oldest = sent.saturating_sub(MAX_AHEAD);
                let again = number.max(oldest)..end;
                self.lost.set(self.lost.get() + end.saturating_sub(again.start));
                self.send_messages(again, outgoing)
            }
            _ => Ok(()),
        }
    }
}

/// Answers the other end while this rank waits for its coordinator. It sends from the buffer of the link.
struct Responder {
    endpoint: Rc<Endpoint>,
    outgoing: Rc<Buffer>,
    arrived: RefCell<Buffer>,
}

impl IdleTask for Responder {
    fn run(&self) {
        let Responder { endpoint, outgoing, arrived } = self;
        let mut arrived = arrived.borrow_mut();
        let peek = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        while let Ok((bytes, _)) = recv(&endpoint.socket, arrived.bytes_mut(), peek) {
            let arrived = &arrived.bytes()[..bytes];
            let after = |datagram: &Datagram| endpoint.datagram(arrived, datagram.message.end);
            let datagrams = iter::successors(endpoint.datagram(arrived, 0), after);
            let headers: Vec<Header> = datagrams.map(|datagram| datagram.header).collect();
            let is_new = |header: &Header| {
                header.kind == DatagramKind::Message && header.number >= endpoint.wanted.get()
            };
            if headers.iter().any(is_new) {
                // The link reads it when this rank continues.
                return;
            }
            let _ = recv(&endpoint.socket, &mut [0u8; LENGTH], RecvFlags::DONTWAIT);
            // If this fails, the other end repeats its request.
            headers.into_iter().for_each(|request| drop(endpoint.answer(request, outgoing.bytes())));
        }
    }
}

#[cfg(test)]
mod tests {
    use ombx_core::{benchmark::Role, team::Team};

    use super::*;
    use crate::link::tests::on_ranks;

    /// The first 46 messages of a window arrive, the others are lost, and all are sent again. An acknowledgement follows in the last train.
    #[test]
    fn repeated_messages_overwrite_none_that_has_arrived() {
        on_ranks(2, |team| {
            let Rank(rank) = team.rank();
            let role = if rank == 0 { Role::Active } else { Role::Passive };
            let cx = Context { role, peer: Rank(1 - rank), ..Context::new(team) };
            let slots = Slots::new(1400, 64);
            let mut link = Datagrams::open(&cx, slots).unwrap();
            let (next, wanted) = (link.endpoint.next.get(), link.endpoint.wanted.get());
            if rank == 1 {
                // As if it had sent a message.
                link.endpoint.next.set(next + 1);
                link.pull().unwrap();
                let acknowledged = if link.endpoint.trains.most_sent() > 1 { next + 1 } else { next };
                assert_eq!((link.endpoint.wanted.get(), link.acknowledged), (wanted + 64, acknowledged));
                for (slot, place) in link.incoming().chunks(slots.stride as usize).enumerate() {
                    assert!(place[..1400].iter().all(|byte| *byte == slot as u8), "slot {slot}");
                }
                return link.acknowledge().unwrap();
            }
            for (slot, place) in link.outgoing().chunks_mut(slots.stride as usize).enumerate() {
                place.fill(slot as u8);
            }
            link.endpoint.next.set(next + 64);
            let (endpoint, outgoing) = (&link.endpoint, link.outgoing.bytes());
            endpoint.send_messages(next..next + 46, outgoing).unwrap();
            endpoint.send_messages(next..next + 46, outgoing).unwrap();
            if endpoint.trains.most_sent() > 1 {
                let datagram = |number| {
                    [&Header::of_message(number).encode()[..], &outgoing[endpoint.message(number)]].concat()
                };
                let messages = (next + 46..next + 64).flat_map(datagram);
                let acknowledgement = Header::new(DatagramKind::Acknowledgement, wanted + 1, 0).encode();
                let train: Vec<u8> = messages.chain(acknowledgement).collect();
                send(&endpoint.socket, &train, SendFlags::NOSIGNAL).unwrap();
            } else {
                endpoint.send_messages(next + 46..next + 64, outgoing).unwrap();
            }
            link.acknowledged().unwrap();
        });
    }

    #[test]
    fn every_link_has_its_own_first_number() {
        let random = |_| first_number(u64::from_le_bytes(crate::link::random().unwrap()));
        let numbers: std::collections::BTreeSet<u64> = (0..100).map(random).collect();
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().all(|number| *number < 1 << 38));
    }
}

#[cfg(test)]
mod header_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ombx_testkit::seeded())]
        #[test]
        fn headers_are_decoded_as_encoded(number in 0u64..1 << 40, count in 0u64..=ACKNOWLEDGEMENT, kind in 0usize..4) {
            let kind = [DatagramKind::Message, DatagramKind::Acknowledgement, DatagramKind::Request, DatagramKind::Hello][kind];
            let header = Header::new(kind, number, count);
            prop_assert_eq!(Header::decode(header.encode()), header);
        }
    }
}
