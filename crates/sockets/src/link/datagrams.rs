//! UDP between two ranks: lost messages are sent again and counted.
//!
//! A datagram is a [`Header`] of 8 bytes and a message. Messages have numbers. One that arrives early is stored at its
//! place, and the missing ones are requested. A rank that receives nothing for a while repeats a request: for the messages
//! from the first missing one on, or for an acknowledgement. While a rank waits for its coordinator, an [`Responder`]
//! answers. So all data arrives, the time of a sample contains the cost of its losses, and `lost_messages` counts them.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{IoSlice, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    rc::Rc,
    time::Duration,
};

use ombx_core::{
    benchmark::{Context, Figure, Figures, payload::Slots},
    error::{Error, Result},
    system::clock::Since,
    two_sided::pattern::Link,
};
use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, send, sendmsg,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    control::Token,
    link::{
        connections::{CONNECT_TIMEOUT, datagram_socket},
        stream::{Buffer, closed, failed},
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
    endpoint: Rc<Endpoint>,
    outgoing: Rc<Buffer>,
    incoming: Buffer,
    /// Whether a message arrived early, by its number modulo [`MAX_AHEAD`].
    early: Vec<bool>,
    /// Messages before this number were requested.
    requested: u64,
    /// Messages before this number belong to windows that were received.
    received: u64,
}

impl Datagrams {
    /// Receives the next datagram, a message into its place. Returns `None` after [`REQUEST_INTERVAL`].
    #[inline(always)]
    fn receive_next(&mut self) -> Result<Option<Header>> {
        let Datagrams { endpoint, incoming, .. } = self;
        let mut header = [0; LENGTH];
        let range = endpoint.message(endpoint.wanted.get());
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(&mut incoming.bytes_mut()[range])];
        let received =
            recvmsg(&endpoint.socket, &mut parts, &mut RecvAncillaryBuffer::default(), RecvFlags::empty());
        match received {
            Ok(received) if received.bytes < LENGTH => Ok(Some(Header::new(Kind::Hello, 0, 1))),
            Ok(_) => Ok(Some(Header::decode(header))),
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::INTR) => Ok(Some(Header::new(Kind::Hello, 0, 1))),
            Err(Errno::CONNREFUSED) => Err(closed()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Receives until all messages before `until` have arrived.
    #[inline(always)]
    fn receive_until(&mut self, until: u64) -> Result<()> {
        let mut requests = 0;
        while self.endpoint.wanted.get() < until {
            let wanted = self.endpoint.wanted.get();
            match self.receive_next()? {
                Some(Header { kind: Kind::Message, number, .. }) if number == wanted => {
                    self.endpoint.wanted.set(wanted + 1);
                    requests = 0;
                    self.skip_early();
                }
                Some(header) => self.handle(header)?,
                None => {
                    requests += 1;
                    self.request(Header::new(Kind::Request, wanted, 0), requests)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn skip_early(&mut self) {
        loop {
            let wanted = self.endpoint.wanted.get();
            let early = &mut self.early[(wanted % MAX_AHEAD) as usize];
            if !std::mem::take(early) {
                return;
            }
            self.endpoint.wanted.set(wanted + 1);
        }
    }

    /// Handles a datagram that is not the expected message.
    #[cold]
    fn handle(&mut self, header: Header) -> Result<()> {
        let wanted = self.endpoint.wanted.get();
        let Header { kind: Kind::Message, number, .. } = header else {
            return self.endpoint.answer(header, self.outgoing.bytes());
        };
        // All messages of a window with one buffer share a slot.
        let ahead = match u64::from(self.endpoint.slots.count) {
            1 => MAX_AHEAD,
            count => MAX_AHEAD.min(count),
        };
        if number <= wanted || number - wanted >= ahead {
            return Ok(());
        }
        let range = self.endpoint.message(wanted);
        let to = self.endpoint.message(number).start;
        self.incoming.bytes_mut().copy_within(range, to);
        self.early[(number % MAX_AHEAD) as usize] = true;
        let first = wanted.max(self.requested);
        if first < number {
            self.requested = number;
            self.endpoint.lost.set(self.endpoint.lost.get() + number - first);
            self.endpoint.send_header(Header::new(Kind::Request, first, number - first))?;
        }
        Ok(())
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
                if bytes == datagram.len() && header.kind == Kind::Hello && self.endpoint.token.is(token) {
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

/// What an end tells the other one over the control channel when a link is opened.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Opening {
    port: u16,
    /// Number of the first message.
    first: u64,
}

/// Returns a random number below 2^38, so that 2^39 messages can follow before their numbers exceed the 40 bits of a header.
fn first_number() -> Result<u64> {
    let random = Token::random()?;
    let half = random.bytes().first_chunk().copied().unwrap_or_default();
    Ok(u64::from_le_bytes(half) >> 26)
}

impl Link for Datagrams {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &SocketTeam = cx.fabric()?;
        let options = team.link_options();
        let single = options.one_stream("udp");
        let socket = cx.agree(single.and_then(|()| datagram_socket(cx, &options, slots, LENGTH)))?;
        let set_up = |e: std::io::Error| Error::fabric(format!("cannot set up a datagram socket: {e}"));
        let port = socket.local_addr().map_err(set_up)?.port();
        // Somebody who cannot read the datagrams must not guess the number of the next one.
        let first = cx.agree(first_number())?;
        team.send_message(cx.peer, &Opening { port, first })?;
        let of_peer: Opening = team.receive_message(cx.peer, "port")?;
        let address = cx.agree(team.address_of(cx.peer, options.ip))?;
        let connected = socket.connect(SocketAddr::new(address, of_peer.port));
        let limited =
            connected.and_then(|()| Ok(set_socket_timeout(&socket, Timeout::Recv, Some(REQUEST_INTERVAL))?));
        cx.agree(limited.map_err(set_up))?;
        let [next, wanted, lost] = [first, of_peer.first, 0].map(Cell::new);
        let endpoint = Rc::new(Endpoint { socket, token: *team.token(), slots, next, wanted, lost });
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total()));
        let early = vec![false; MAX_AHEAD as usize];
        let link = Datagrams {
            team: team.clone(),
            endpoint,
            outgoing: Rc::new(outgoing),
            incoming,
            early,
            requested: of_peer.first,
            received: of_peer.first,
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
        self.endpoint.send_message(number, self.outgoing.bytes())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.received += 1;
        self.receive_until(self.received)
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        for _ in 0..self.endpoint.slots.count {
            self.send()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.received += u64::from(self.endpoint.slots.count);
        self.receive_until(self.received)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.push()?;
        self.pull()
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.endpoint.send_header(Header::new(Kind::Acknowledgement, self.endpoint.wanted.get(), 0))
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let (sent, mut requests) = (self.endpoint.next.get(), 0);
        loop {
            match self.receive_next()? {
                Some(Header { kind: Kind::Acknowledgement, number, .. }) if number == sent => return Ok(()),
                Some(header) => self.handle(header)?,
                None => {
                    requests += 1;
                    self.request(Header::new(Kind::Request, sent, ACKNOWLEDGEMENT), requests)?;
                }
            }
        }
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(BTreeMap::from([("lost_messages".into(), Figure::Value(self.endpoint.lost.get() as f64))]))
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

impl Datagrams {
    /// Lets a [`Responder`] answer the other end while this rank waits for its coordinator.
    fn answer_while_idle(&self) {
        let responder =
            Responder { endpoint: Rc::clone(&self.endpoint), outgoing: Rc::clone(&self.outgoing) };
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
enum Kind {
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
    kind: Kind,
    count: u64,
    number: u64,
}

/// Count of a [`Kind::Request`] that asks for an acknowledgement.
const ACKNOWLEDGEMENT: u64 = (1 << 22) - 1;

impl Header {
    #[inline(always)]
    fn new(kind: Kind, number: u64, count: u64) -> Header {
        Header { kind, count, number }
    }

    #[inline(always)]
    fn encode(self) -> [u8; LENGTH] {
        (self.number << 24 | self.count.min(ACKNOWLEDGEMENT) << 2 | self.kind as u64).to_le_bytes()
    }

    #[inline(always)]
    fn decode(bytes: [u8; LENGTH]) -> Header {
        let header = u64::from_le_bytes(bytes);
        let kind = match header & 3 {
            0 => Kind::Message,
            1 => Kind::Acknowledgement,
            2 => Kind::Request,
            _ => Kind::Hello,
        };
        Header { kind, count: header >> 2 & ACKNOWLEDGEMENT, number: header >> 24 }
    }
}

/// Maximum number of messages that may arrive before a missing one.
const MAX_AHEAD: u64 = 4096;

/// State that a link and its [`Responder`] share.
struct Endpoint {
    socket: UdpSocket,
    token: Token,
    slots: Slots,
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

    #[inline(always)]
    fn send_message(&self, number: u64, outgoing: &[u8]) -> Result<()> {
        #[cfg(test)]
        if crate::link::tests::loses() {
            return Ok(());
        }
        let head = Header::new(Kind::Message, number, 0).encode();
        let parts = [IoSlice::new(&head), IoSlice::new(&outgoing[self.message(number)])];
        loop {
            match sendmsg(&self.socket, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                // Without buffer space the message counts as lost.
                Ok(_) | Err(Errno::NOBUFS) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
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
        let hello = [&Header::new(Kind::Hello, 0, count).encode()[..], self.token.bytes()].concat();
        match send(&self.socket, &hello, SendFlags::NOSIGNAL) {
            // The other end may have no socket yet.
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN | Errno::CONNREFUSED) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Answers a request of the other end.
    fn answer(&self, request: Header, outgoing: &[u8]) -> Result<()> {
        match request {
            Header { kind: Kind::Hello, count: 0, .. } => self.send_hello(1),
            Header { kind: Kind::Request, count: ACKNOWLEDGEMENT, number } => match number
                .checked_sub(self.wanted.get())
            {
                // Some of the messages that it has sent are missing.
                Some(missing @ 1..) => {
                    self.send_header(Header::new(Kind::Request, self.wanted.get(), missing.min(MAX_AHEAD)))
                }
                _ => self.send_header(Header::new(Kind::Acknowledgement, self.wanted.get(), 0)),
            },
            Header { kind: Kind::Request, count, number } => {
                let sent = self.next.get();
                let end = if count == 0 { sent } else { sent.min(number.saturating_add(count)) };
                // Older messages have arrived, and the buffer does not hold them any more.
                let oldest = sent.saturating_sub(MAX_AHEAD);
                for number in number.max(oldest)..end {
                    self.lost.set(self.lost.get() + 1);
                    self.send_message(number, outgoing)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Answers the other end while this rank waits for its coordinator. It sends from the buffer of the link.
struct Responder {
    endpoint: Rc<Endpoint>,
    outgoing: Rc<Buffer>,
}

impl IdleTask for Responder {
    fn run(&self) {
        let (mut header, socket) = ([0; LENGTH], &self.endpoint.socket);
        while let Ok((LENGTH.., _)) = recv(socket, &mut header, RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            let request = Header::decode(header);
            if request.kind == Kind::Message && request.number >= self.endpoint.wanted.get() {
                // The link reads it when this rank continues.
                return;
            }
            let _ = recv(socket, &mut header, RecvFlags::DONTWAIT);
            // If this fails, the other end repeats its request.
            let _ = self.endpoint.answer(request, self.outgoing.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_has_its_own_first_number() {
        let numbers: std::collections::BTreeSet<u64> = (0..100).map(|_| first_number().unwrap()).collect();
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().all(|number| *number < 1 << 38));
    }
}

#[cfg(test)]
mod header_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ombx_core::testkit::seeded())]
        #[test]
        fn headers_are_decoded_as_encoded(number in 0u64..1 << 40, count in 0u64..=ACKNOWLEDGEMENT, kind in 0usize..4) {
            let kind = [Kind::Message, Kind::Acknowledgement, Kind::Request, Kind::Hello][kind];
            let header = Header::new(kind, number, count);
            prop_assert_eq!(Header::decode(header.encode()), header);
        }
    }
}
