//! Trains: datagrams of equal length that one call sends or receives (`UDP_SEGMENT`, Linux 4.18; `UDP_GRO`, Linux 5.0).
//!
//! The network device divides a train into datagrams, or the kernel does it for the device. The kernel joins datagrams that arrive
//! together.

use std::{
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
        RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg,
        sockopt::{ip_mtu, ipv6_mtu},
    },
};

use super::{stream::failed, zero_copy::set_option};
use crate::transport::Offload;

/// Maximum number of datagrams of a train: that of kernels before 6.10.
pub(super) const MOST: usize = 64;
/// Maximum number of bytes of a train, for IPv4 and IPv6.
pub(super) const MOST_BYTES: usize = 65_487;
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
    /// The same that a call receives.
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
        (length, others): (usize, usize),
        offload: Offload,
    ) -> Trains {
        let messages = slots.count as usize;
        let most =
            if offload == Offload::Off { 1 } else { MOST.min(MOST_BYTES / length.max(1)).min(messages) };
        let mtu = ip_mtu(socket).or_else(|_| ipv6_mtu(socket)).unwrap_or(0);
        let fits = length >= others && length + HEADERS <= mtu as usize;
        let divides = most > 1 && fits && set_option(socket, SOL_UDP, UDP_SEGMENT, length as c_int).is_ok();
        // Messages that share a slot cannot be received by one call.
        let places = if slots.stride == 0 { 1 } else { most };
        let joins = places > 1 && set_option(socket, SOL_UDP, UDP_GRO, 1).is_ok();
        Trains {
            sent: Cell::new(if divides { most } else { 1 }),
            received: if joins { places } else { 1 },
            sends: Cell::default(),
            receives: Cell::default(),
        }
    }

    /// Returns the maximum number of datagrams that a call sends.
    #[inline(always)]
    pub(super) fn most_sent(&self) -> usize {
        self.sent.get()
    }

    /// Returns the maximum number of datagrams that a call receives.
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
            return self
                .send_parts(socket, &[IoSlice::new(head), IoSlice::new(messages.next().unwrap_or(&[]))]);
        }
        let mut parts = [IoSlice::new(&[]); 2 * MOST];
        let mut used = 0;
        for (head, message) in heads.iter().zip(messages) {
            (parts[used], parts[used + 1]) = (IoSlice::new(head), IoSlice::new(message));
            used += 2;
        }
        self.send_parts(socket, &parts[..used])
    }

    /// Sends datagrams of two parts each. Without buffer space they are lost.
    #[inline(always)]
    fn send_parts(&self, socket: &UdpSocket, parts: &[IoSlice<'_>]) -> Result<()> {
        loop {
            match sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::NOBUFS) => {
                    count(&self.sends, parts.len() / 2);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::INVAL | Errno::IO | Errno::MSGSIZE) if self.sent.get() > 1 => {
                    return self.send_each(socket, parts);
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// Sends each datagram by itself from now on, because the route or its device does not divide trains.
    #[cold]
    fn send_each(&self, socket: &UdpSocket, parts: &[IoSlice<'_>]) -> Result<()> {
        self.sent.set(1);
        set_option(socket, SOL_UDP, UDP_SEGMENT, 0).map_err(failed)?;
        parts.chunks(2).try_for_each(|parts| self.send_parts(socket, parts))
    }

    /// Receives a train: head i into `heads[i]`, message i into the i-th of `messages`. Returns its bytes.
    #[inline(always)]
    pub(super) fn receive<'m, const HEAD: usize>(
        &self,
        socket: &UdpSocket,
        heads: &mut [[u8; HEAD]],
        mut messages: impl Iterator<Item = &'m mut [u8]>,
    ) -> rustix::io::Result<usize> {
        let mut control = RecvAncillaryBuffer::default();
        let received = if let [head] = heads {
            let parts = &mut [IoSliceMut::new(head), IoSliceMut::new(messages.next().unwrap_or_default())];
            recvmsg(socket, parts, &mut control, RecvFlags::empty())
        } else {
            let mut parts: [IoSliceMut<'_>; 2 * MOST] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
            let mut used = 0;
            for (head, message) in heads.iter_mut().zip(messages) {
                (parts[used], parts[used + 1]) = (IoSliceMut::new(head), IoSliceMut::new(message));
                used += 2;
            }
            recvmsg(socket, &mut parts[..used], &mut control, RecvFlags::empty())
        };
        received.map(|received| received.bytes)
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

    fn passes(offload: Offload, per_call: f64) {
        let [from, to] = pair();
        let slots = Slots::new(100, 8);
        let [sender, receiver] = [&from, &to].map(|socket| Trains::enable(socket, slots, (104, 24), offload));
        let heads: [[u8; 4]; 8] = std::array::from_fn(|i| [i as u8; 4]);
        let messages = [7; 800];
        let most = sender.most_sent().min(8);
        for heads in heads.chunks(most) {
            sender.send(&from, heads, messages.chunks(100)).unwrap();
        }
        let (mut arrived, mut incoming) = (0, vec![0; slots.total() as usize]);
        while arrived < 8 {
            let mut heads = [[0; 4]; 8];
            let most = receiver.most_received();
            let places = incoming.chunks_mut(slots.stride as usize).map(|place| &mut place[..100]);
            let bytes = receiver.receive(&to, &mut heads[..most], places).unwrap();
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
        passes(Offload::On, 8.0);
        passes(Offload::Off, 1.0);
    }

    #[test]
    fn long_datagrams_and_messages_that_share_a_slot_are_no_trains() {
        let [socket, _other] = pair();
        let long = Trains::enable(&socket, Slots::new(40_000, 4), (40_008, 24), Offload::On);
        assert_eq!((long.most_sent(), long.most_received()), (1, 1));
        let shared = Trains::enable(&socket, Slots::shared(100, 4), (108, 24), Offload::On);
        assert!(shared.most_sent() > 1 && shared.most_received() == 1);
        let short = Trains::enable(&socket, Slots::new(4, 4), (12, 24), Offload::On);
        assert_eq!(short.most_sent(), 1);
    }
}
