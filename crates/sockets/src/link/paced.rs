//! UDP at an offered rate between two ranks. What is lost stays lost; a TCP connection carries the report of each round.
//!
//! A datagram is a header of 24 bytes, that is round, number and time of sending, and a message. Those that are due go in [trains](Trains).
//! Datagrams lie one after the other in memory, so that a call sends at most two ranges of bytes, and receives a train into one.

use std::{
    io::{Read, Write},
    net::UdpSocket,
    ops::Range,
    time::Duration,
};

use ombx_core::{
    benchmark::{Context, Figures, Role, payload::Slots},
    codec,
    error::{Error, Result},
    two_sided::{
        received::{Arrival, Received},
        scheduled_link::DatagramLink,
    },
};
use ombx_host::since::Since;
use rustix::{
    io::Errno,
    net::{
        RecvFlags, recv,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use crate::{
    link::{
        CONNECT_TIMEOUT, Tcp, connect_datagrams, connect_peers, datagram_socket,
        trains::{self, Trains},
        transfer::{Buffer, closed, failed},
    },
    session::SocketTeam,
    socket::Stream,
};

/// Bytes of a header.
const LENGTH: usize = 24;
/// After this time without a datagram, or three round trips if that is longer, the receiver asks whether the round is over.
const SILENCE: Duration = Duration::from_millis(20);
/// Maximum length of a report in bytes.
const MAX_REPORT: u64 = 1 << 16;
/// The receiver receives; the sender has sent all; a datagram has crossed the network.
const READY: u8 = 1;
const END: u8 = 2;
const CROSSED: u8 = 3;

/// One end of a UDP socket that is connected to one peer, and of the TCP connection beside it.
pub(crate) struct PacedDatagrams {
    socket: UdpSocket,
    control: Stream,
    trains: Trains,
    slots: Slots,
    /// Datagrams to send, each a header and a message, and room for one more: the messages alone begin later.
    outgoing: Buffer,
    /// Datagrams that arrived, and room for one more, which the kernel may join to the longest train.
    incoming: Buffer,
    /// Number of the round, on both ends. The first is random, so that nobody can guess it.
    round: u64,
    /// Numbers of the datagrams whose messages are in the slots of `incoming`.
    arrived: Vec<Option<u64>>,
    /// Slot of the next datagram.
    next: usize,
    /// Whether the sender has sent all datagrams of the round.
    ended: bool,
    /// Calls with which the other rank has received datagrams, and their datagrams; known on the sender.
    receives: [u64; 2],
}

fn header(words: [u64; 3]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
    bytes
}

/// Returns the words of the header of a datagram.
fn words(datagram: &[u8]) -> [u64; 3] {
    let mut words = datagram.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    [(); 3].map(|()| words.next().unwrap_or_default())
}

/// Returns the error of the TCP connection.
#[cold]
fn lost_control(error: &std::io::Error) -> Error {
    Error::fabric(format!("the connection that carries the reports of rounds failed: {error}"))
}

impl PacedDatagrams {
    /// Sends until a datagram has crossed the network; returns the time of a round trip.
    fn probe(&self, peer: &str) -> Result<Duration> {
        let since = Since::now();
        while since.elapsed() < CONNECT_TIMEOUT {
            let sent = Since::now();
            self.trains.send_packed(&self.socket, [&header([self.round, u64::MAX, 0]), &[]], 1)?;
            let mut byte = [0];
            set_socket_timeout(&self.control, Timeout::Recv, Some(SILENCE)).map_err(failed)?;
            match recv(&self.control, &mut byte, RecvFlags::empty()) {
                Ok((1, _)) if byte[0] == CROSSED => return Ok(sent.elapsed()),
                Ok(_) => return Err(closed()),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Err(Error::unsupported(format!(
            "no datagram arrived at {peer} within {} s",
            CONNECT_TIMEOUT.as_secs()
        )))
    }

    /// Waits for a datagram of [`PacedDatagrams::probe`] and answers over TCP.
    fn answer(&mut self, peer: &str) -> Result<()> {
        let since = Since::now();
        while since.elapsed() < CONNECT_TIMEOUT {
            let mut head = [0; LENGTH];
            if let Ok((LENGTH, _)) = recv(&self.socket, &mut head, RecvFlags::empty())
                && words(&head) == [self.round, u64::MAX, 0]
            {
                return self.tell(CROSSED);
            }
        }
        Err(Error::unsupported(format!(
            "no datagram of {peer} arrived within {} s",
            CONNECT_TIMEOUT.as_secs()
        )))
    }

    fn tell(&mut self, what: u8) -> Result<()> {
        (&self.control).write_all(&[what]).map_err(|e| lost_control(&e))
    }

    fn expect(&mut self, what: u8) -> Result<()> {
        let mut byte = [0];
        (&self.control).read_exact(&mut byte).map_err(|e| lost_control(&e))?;
        if byte[0] == what {
            Ok(())
        } else {
            Err(Error::fabric("the ranks of a round of datagrams are out of step"))
        }
    }
}

impl DatagramLink for PacedDatagrams {
    const HEADER: u64 = LENGTH as u64;

    #[inline(always)]
    fn most_sent(&self) -> usize {
        self.trains.most_sent()
    }

    #[inline(always)]
    fn send(&mut self, numbers: Range<u64>, sent_ns: u64) -> Result<()> {
        let PacedDatagrams { socket, trains, slots, outgoing, round, .. } = self;
        let length = slots.stride as usize;
        let place = |number: u64| slots.offset((number % u64::from(slots.count)) as u32);
        for number in numbers.clone() {
            let head = header([*round, number, sent_ns]);
            outgoing.bytes_mut()[place(number)..][..LENGTH].copy_from_slice(&head);
        }
        let datagrams = (numbers.end - numbers.start) as usize;
        let (start, buffer_end) = (place(numbers.start), slots.total() as usize);
        let end = start + datagrams * length;
        let ranges = [start..end.min(buffer_end), 0..end.saturating_sub(buffer_end)];
        trains.send_packed(socket, ranges.map(|range| &outgoing.bytes()[range]), datagrams)
    }

    #[inline(always)]
    fn receive(&mut self, found: &mut [Arrival]) -> Result<usize> {
        let PacedDatagrams { socket, trains, slots, incoming, round, arrived, next, .. } = self;
        let (length, most) = (slots.stride as usize, trains.most_received());
        loop {
            if *next + most > arrived.len() {
                *next = 0;
            }
            let places = &mut incoming.bytes_mut()[*next * length..];
            let received = if most == 1 {
                let (head, message) = places[..length].split_at_mut(LENGTH);
                trains::receive_one(socket, head, message)
            } else {
                trains::receive_packed(socket, &mut places[..(most + 1) * length])
            };
            let bytes = match received {
                Ok(bytes) => bytes,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::CONNREFUSED) => return Err(closed()),
                Err(errno) => return Err(failed(errno)),
            };
            let datagrams = (bytes / length).min(most);
            let numbers = &mut arrived[*next..];
            let overwritten = bytes.div_ceil(length).min(numbers.len());
            // What a call overwrites has not arrived any more.
            numbers[..overwritten].fill(None);
            let mut count = 0;
            for (datagram, arrived) in places[..datagrams * length].chunks_exact(length).zip(numbers) {
                let [of_round, number, sent_ns] = words(datagram);
                if of_round == *round && count < found.len() {
                    *arrived = Some(number);
                    found[count] = Arrival { number, sent_ns, at_ns: 0 };
                    count += 1;
                }
            }
            if count > 0 {
                trains.count_received(datagrams);
                *next += datagrams;
                return Ok(count);
            }
        }
    }

    fn is_over(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(true);
        }
        let mut byte = [0];
        match recv(&self.control, &mut byte, RecvFlags::DONTWAIT) {
            // Datagrams that are on their way have until the next silence.
            Ok((1, _)) => self.ended = true,
            Ok(_) => return Err(closed()),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        Ok(false)
    }

    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &SocketTeam = cx.fabric()?;
        let options = team.link_options();
        let socket = cx.agree(datagram_socket(cx, &options, slots, LENGTH))?;
        let control = Stream::from(connect_peers::<Tcp>(cx)?);
        let [own, of_peer] = connect_datagrams(cx, &options, &socket, SILENCE)?;
        let length = slots.stride as usize;
        let trains = Trains::enable(&socket, slots, length, LENGTH, options.offload);
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total() + slots.stride));
        let arrived = vec![None; slots.count as usize];
        let mut link = PacedDatagrams {
            socket,
            control,
            trains,
            slots,
            outgoing,
            incoming,
            round: own ^ of_peer,
            arrived,
            next: 0,
            ended: false,
            receives: [0; 2],
        };
        let peer = format!("rank {}", cx.peer);
        let met = match cx.role {
            Role::Active => link.probe(&peer),
            Role::Passive => link.answer(&peer).map(|()| Duration::ZERO),
        };
        let round_trip = cx.agree(met)?;
        // Only the sender knows the round trip.
        let silence = match cx.role {
            Role::Active => {
                let silence = SILENCE.max(3 * round_trip).min(Duration::from_secs(2));
                team.send_message(cx.peer, &silence)?;
                silence
            }
            Role::Passive => {
                let silence: Duration = team.receive_message(cx.peer, "time of silence")?;
                silence.max(SILENCE)
            }
        };
        set_socket_timeout(&link.socket, Timeout::Recv, Some(silence)).map_err(failed)?;
        let limit = Some(super::transfer::TRANSFER_TIMEOUT);
        link.control.set_timeout(limit).map_err(|e| lost_control(&e))?;
        Ok(link)
    }

    fn begin(&mut self) -> Result<()> {
        self.round = self.round.wrapping_add(1);
        self.ended = false;
        Ok(())
    }

    fn ready(&mut self) -> Result<()> {
        self.tell(READY)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        self.expect(READY)
    }

    fn finish(&mut self) -> Result<Received> {
        self.tell(END)?;
        let mut length = [0; 8];
        (&self.control).read_exact(&mut length).map_err(|e| lost_control(&e))?;
        let length = u64::from_le_bytes(length);
        if length > MAX_REPORT {
            return Err(Error::fabric("the report of a round of datagrams is malformed"));
        }
        let mut report = vec![0; length as usize];
        (&self.control).read_exact(&mut report).map_err(|e| lost_control(&e))?;
        let (received, receives) = codec::decode(&report)
            .ok_or_else(|| Error::fabric("the report of a round of datagrams is malformed"))?;
        self.receives = receives;
        Ok(received)
    }

    fn figures(&self) -> Figures {
        self.trains.figures(self.receives)
    }

    fn report(&mut self, received: &Received) -> Result<()> {
        if !self.ended {
            self.expect(END)?;
        }
        let report = codec::encode(&(received, self.trains.receives()));
        let all = [&(report.len() as u64).to_le_bytes()[..], &report].concat();
        (&self.control).write_all(&all).map_err(|e| lost_control(&e))
    }

    fn arrived(&self) -> &[Option<u64>] {
        &self.arrived
    }

    fn forget(&mut self) {
        self.arrived.fill(None);
        self.next = 0;
    }

    fn outgoing(&mut self) -> &mut [u8] {
        &mut self.outgoing.bytes_mut()[LENGTH..]
    }

    fn incoming(&mut self) -> &mut [u8] {
        &mut self.incoming.bytes_mut()[LENGTH..]
    }
}
