//! Trains: datagrams of equal length that one call sends or receives (`UDP_SEGMENT`, Linux 4.18; `UDP_GRO`, Linux 5.0).
//!
//! The network device divides a train into datagrams, or the kernel does it for the device. The kernel joins datagrams that arrive
//! together.

use std::{
    array,
    cell::Cell,
    ffi::c_int,
    io::{IoSlice, IoSliceMut},
    net::UdpSocket,
};

use ombx_core::{
    benchmark::{Figure, Figures, payload::Slots},
    error::Result,
};
use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvFlags, RecvMsg, ReturnFlags, SendAncillaryBuffer, SendFlags, recvmsg,
        sendmsg,
        sockopt::{ip_mtu, ipv6_mtu},
    },
};

use super::{transfer::failed, zero_copy::set_option};
use crate::options::Offload;

/// Maximum number of datagrams of a train: that of kernels before 6.10.
pub(super) const MOST: usize = 64;
/// Maximum number of bytes of a train that is sent, for IPv4 and IPv6.
const MOST_SENT_BYTES: usize = 65_487;
/// Maximum number of bytes of a train that arrives: the length in a header of IP has 16 bits.
pub(super) const MOST_RECEIVED_BYTES: usize = 65_535;
/// Bytes of the headers of UDP and IPv6, which are longer than those of IPv4.
const HEADERS: usize = 48;

/// Level and names of the options, from linux/in.h and linux/udp.h.
const SOL_UDP: c_int = 17;
const UDP_SEGMENT: c_int = 103;
const UDP_GRO: c_int = 104;

/// The trains of a socket.
#[derive(Debug)]
pub(super) struct Trains {
    /// Maximum number of datagrams that a call sends.
    sent: Cell<usize>,
    /// Maximum number of messages that a call receives into their places. The kernel may join more datagrams.
    received: usize,
    /// Calls that sent, and the datagrams that they sent.
    sends: Cell<[u64; 2]>,
    /// Calls that received, and the datagrams that they received.
    receives: Cell<[u64; 2]>,
}

impl Trains {
    /// Enables trains of datagrams of `length` bytes on a connected socket, as far as this kernel, the route and the slots of the messages
    /// allow them. Other datagrams on this socket have at most `others` bytes.
    pub(super) fn enable(
        socket: &UdpSocket,
        slots: Slots,
        length: usize,
        others: usize,
        offload: Offload,
    ) -> Trains {
        let [sent, received] = [MOST_SENT_BYTES, MOST_RECEIVED_BYTES].map(|bytes| {
            let most = if offload == Offload::Off { 1 } else { MOST.min(bytes / length.max(1)) };
            most.min(slots.count as usize)
        });
        let mtu = ip_mtu(socket).or_else(|_| ipv6_mtu(socket)).unwrap_or(0);
        let fits = length >= others && length + HEADERS <= mtu as usize;
        let divides = sent > 1 && fits && set_option(socket, SOL_UDP, UDP_SEGMENT, length as c_int).is_ok();
        // Messages that share a slot cannot be received by one call.
        let joins = received > 1 && slots.stride > 0 && set_option(socket, SOL_UDP, UDP_GRO, 1).is_ok();
        Trains {
            sent: Cell::new(if divides { sent } else { 1 }),
            received: if joins { received } else { 1 },
            sends: Cell::default(),
            receives: Cell::default(),
        }
    }

    /// Returns the maximum number of datagrams that a call sends.
    #[inline(always)]
    pub(super) fn most_sent(&self) -> usize {
        self.sent.get()
    }

    /// Returns the maximum number of messages that a call receives into their places.
    #[inline(always)]
    pub(super) fn most_received(&self) -> usize {
        self.received
    }

    /// Sends datagrams with one call, or each by itself if the route does not allow trains. Datagram i is head i and message i.
    #[inline(always)]
    pub(super) fn send<'m, const HEAD: usize>(
        &self,
        socket: &UdpSocket,
        heads: &[[u8; HEAD]],
        mut messages: impl Iterator<Item = &'m [u8]>,
    ) -> Result<()> {
        if let [head] = heads {
            let parts = [IoSlice::new(head), IoSlice::new(messages.next().unwrap_or(&[]))];
            return self.send_pairs(socket, &parts);
        }
        let mut parts = [IoSlice::new(&[]); 2 * MOST];
        let mut used = 0;
        for (head, message) in heads.iter().zip(messages) {
            (parts[used], parts[used + 1]) = (IoSlice::new(head), IoSlice::new(message));
            used += 2;
        }
        self.send_pairs(socket, &parts[..used])
    }

    /// Sends datagrams of equal length that lie one after the other, in two ranges, like [`Trains::send`].
    #[inline(always)]
    pub(super) fn send_packed(&self, socket: &UdpSocket, ranges: [&[u8]; 2], datagrams: usize) -> Result<()> {
        if self.send_together(socket, &ranges.map(IoSlice::new), datagrams)? {
            return Ok(());
        }
        let length = (ranges[0].len() + ranges[1].len()) / datagrams;
        let mut each = ranges.into_iter().flat_map(|range| range.chunks(length));
        each.try_for_each(|datagram| self.send_together(socket, &[IoSlice::new(datagram)], 1).map(drop))
    }

    /// Sends datagrams of two parts each.
    #[inline(always)]
    fn send_pairs(&self, socket: &UdpSocket, parts: &[IoSlice<'_>]) -> Result<()> {
        if self.send_together(socket, parts, parts.len() / 2)? {
            return Ok(());
        }
        parts.chunks(2).try_for_each(|pair| self.send_together(socket, pair, 1).map(drop))
    }

    /// Sends datagrams with one call. Without buffer space they are lost. Returns `false` if nothing is sent because the route or its
    /// device does not divide trains: then the caller sends each datagram by itself.
    #[inline(always)]
    fn send_together(&self, socket: &UdpSocket, parts: &[IoSlice<'_>], datagrams: usize) -> Result<bool> {
        loop {
            match sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::NOBUFS) => {
                    count(&self.sends, datagrams);
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(Errno::INVAL | Errno::IO | Errno::MSGSIZE) if self.sent.get() > 1 => {
                    return self.stop(socket).map(|()| false);
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// Lets each call send one datagram from now on.
    #[cold]
    fn stop(&self, socket: &UdpSocket) -> Result<()> {
        self.sent.set(1);
        set_option(socket, SOL_UDP, UDP_SEGMENT, 0).map_err(failed)
    }

    /// Counts a call that received this number of datagrams.
    #[inline(always)]
    pub(super) fn count_received(&self, datagrams: usize) {
        count(&self.receives, datagrams);
    }

    /// Returns the calls that received, and the datagrams that they received.
    pub(super) fn receives(&self) -> [u64; 2] {
        self.receives.get()
    }

    /// Returns how many datagrams a call sent on this rank and received on the other one, which says so.
    pub(super) fn figures(&self, receives: [u64; 2]) -> Figures {
        let mean = |name: &str, [calls, datagrams]: [u64; 2]| {
            (calls > 0).then(|| (name.to_owned(), Figure::Value(datagrams as f64 / calls as f64)))
        };
        [mean("datagrams_per_send", self.sends.get()), mean("datagrams_per_receive", receives)]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Receives a datagram, of which the bytes that do not fit are cut off. Returns the others.
#[inline(always)]
pub(super) fn receive_one(
    socket: &UdpSocket,
    head: &mut [u8],
    message: &mut [u8],
) -> rustix::io::Result<usize> {
    let parts = &mut [IoSliceMut::new(head), IoSliceMut::new(message)];
    receive_parts(socket, parts).map(|received| received.bytes)
}

/// Receives a train: head i into `heads[i]`, message i into the i-th of `messages`, what follows into `rest`. Returns its bytes.
///
/// # Errors
/// [`Errno::MSGSIZE`] if some of its bytes are cut off.
#[inline(always)]
pub(super) fn receive<'m, const HEAD: usize>(
    socket: &UdpSocket,
    heads: &mut [[u8; HEAD]],
    messages: impl Iterator<Item = &'m mut [u8]>,
    rest: &mut [u8],
) -> rustix::io::Result<usize> {
    let mut parts: [IoSliceMut<'_>; 2 * MOST + 1] = array::from_fn(|_| IoSliceMut::new(&mut []));
    let mut used = 0;
    for (head, message) in heads.iter_mut().zip(messages) {
        (parts[used], parts[used + 1]) = (IoSliceMut::new(head), IoSliceMut::new(message));
        used += 2;
    }
    parts[used] = IoSliceMut::new(rest);
    whole(receive_parts(socket, &mut parts[..=used])?)
}

/// Receives a train into a buffer, its datagrams one after the other. Returns its bytes.
///
/// # Errors
/// [`Errno::MSGSIZE`] if some of its bytes are cut off.
#[inline(always)]
pub(super) fn receive_packed(socket: &UdpSocket, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    whole(receive_parts(socket, &mut [IoSliceMut::new(buffer)])?)
}

#[inline(always)]
fn whole(received: RecvMsg) -> rustix::io::Result<usize> {
    if received.flags.contains(ReturnFlags::TRUNC) { Err(Errno::MSGSIZE) } else { Ok(received.bytes) }
}

#[inline(always)]
fn receive_parts(socket: &UdpSocket, parts: &mut [IoSliceMut<'_>]) -> rustix::io::Result<RecvMsg> {
    recvmsg(socket, parts, &mut RecvAncillaryBuffer::default(), RecvFlags::empty())
}

/// Counts a call with this number of datagrams.
#[inline(always)]
fn count(calls: &Cell<[u64; 2]>, datagrams: usize) {
    let [before, sum] = calls.get();
    calls.set([before + 1, sum + datagrams as u64]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two sockets that are connected to each other.
    fn pair() -> [UdpSocket; 2] {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [one, other] = &sockets;
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        sockets
    }

    /// Returns whether the kernel divides and joins datagrams; says so if it does not.
    #[expect(clippy::print_stderr, reason = "a test says what it skips")]
    fn has_trains() -> bool {
        let [socket, _other] = pair();
        let has = [(UDP_SEGMENT, 104), (UDP_GRO, 1)]
            .into_iter()
            .all(|(name, value)| set_option(&socket, SOL_UDP, name, value).is_ok());
        if !has {
            eprintln!("skipped: this kernel has no GSO or GRO for UDP");
        }
        has
    }

    fn enable(socket: &UdpSocket, slots: Slots, offload: Offload) -> Trains {
        Trains::enable(socket, slots, 4 + slots.bytes as usize, 24, offload)
    }

    fn passes(offload: Offload, per_call: f64) {
        let [from, to] = pair();
        let slots = Slots::new(100, 8);
        let [sender, receiver] = [&from, &to].map(|socket| enable(socket, slots, offload));
        let heads: [[u8; 4]; 8] = array::from_fn(|i| [i as u8; 4]);
        let messages = [7; 800];
        for heads in heads.chunks(sender.most_sent()) {
            sender.send(&from, heads, messages.chunks(100)).unwrap();
        }
        let mut incoming = vec![0; slots.total() as usize];
        let mut arrived = 0;
        while arrived < 8 {
            let mut heads = [[0; 4]; 8];
            let places = incoming.chunks_mut(slots.stride as usize).map(|place| &mut place[..100]);
            let bytes = receive(&to, &mut heads[..receiver.most_received()], places, &mut []).unwrap();
            assert_eq!(bytes % 104, 0);
            for head in &heads[..bytes / 104] {
                assert_eq!(*head, [arrived as u8; 4]);
                arrived += 1;
            }
            receiver.count_received(bytes / 104);
            assert_eq!(incoming[..100], [7; 100]);
        }
        let figures = sender.figures(receiver.receives());
        for name in ["datagrams_per_send", "datagrams_per_receive"] {
            assert_eq!(figures[name], Figure::Value(per_call), "{name}");
        }
    }

    #[test]
    fn a_train_arrives_as_it_was_sent() {
        passes(Offload::Off, 1.0);
        if has_trains() {
            passes(Offload::On, 8.0);
        }
    }

    /// Five datagrams, of which the last two are at the start of the buffer.
    #[test]
    fn a_packed_train_arrives_in_order() {
        if !has_trains() {
            return;
        }
        let [from, to] = pair();
        let [sender, _receiver] = [&from, &to].map(|socket| enable(socket, Slots::new(96, 8), Offload::On));
        let buffer: Vec<u8> = (0..500).map(|at| (at / 100) as u8).collect();
        let send = || sender.send_packed(&from, [&buffer[200..], &buffer[..200]], 5).unwrap();
        let mut arrived = [9; 500];
        send();
        assert_eq!(receive_packed(&to, &mut arrived), Ok(500));
        let order: Vec<u8> = arrived.chunks(100).map(|datagram| datagram[0]).collect();
        assert_eq!((order, sender.sends.get()), (vec![2, 3, 4, 0, 1], [1, 5]));
        send();
        assert_eq!(receive_packed(&to, &mut arrived[..499]), Err(Errno::MSGSIZE));
    }

    #[test]
    fn long_datagrams_and_messages_that_share_a_slot_are_no_trains() {
        let [socket, _other] = pair();
        let most = |slots| {
            let trains = enable(&socket, slots, Offload::On);
            [trains.most_sent(), trains.most_received()]
        };
        assert_eq!(most(Slots::new(40_000, 4)), [1, 1]);
        assert_eq!(most(Slots::new(4, 4))[0], 1, "a token is longer");
        if has_trains() {
            assert_eq!(most(Slots::shared(100, 4)), [4, 1]);
            // The kernel joins more bytes than it divides.
            assert_eq!(most(Slots::new(1420, 64)), [45, 46]);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        if !has_trains() {
            return;
        }
        let [from, to] = pair();
        let slots = Slots::new(100, 8);
        let [sender, _receiver] = [&from, &to].map(|socket| enable(socket, slots, Offload::On));
        let send = || sender.send(&from, &[[1; 4]; 3], [9; 300].chunks(100)).unwrap();
        let (mut heads, mut incoming, mut rest) = ([[0; 4]; 2], [0; 200], [0; 104]);
        send();
        assert_eq!(receive(&to, &mut heads, incoming.chunks_mut(100), &mut rest), Ok(312));
        assert_eq!((rest[..4].to_vec(), rest[4..].to_vec()), (vec![1; 4], vec![9; 100]));
        send();
        let cut_off = receive(&to, &mut heads, incoming.chunks_mut(100), &mut rest[..103]);
        assert_eq!(cut_off, Err(Errno::MSGSIZE));
    }
}
