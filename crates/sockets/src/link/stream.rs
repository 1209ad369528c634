//! A stream socket between two ranks. One `send` writes a message unless the kernel takes less at a time, and each `recv` reads what has
//! arrived of one.

use std::{marker::PhantomData, ops::Range, os::fd::OwnedFd};

use ombx_core::{
    benchmark::{ConnectionCounters, Context, Figure, Figures, payload::Slots},
    error::{Error, Result},
    two_sided::pattern::Link,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, ipproto, recv, send, sockopt::tcp_congestion},
};

use crate::{
    link::{
        SocketKind, connect_peers, tcp_info,
        transfer::{Buffer, Moved, TRANSFER_TIMEOUT, closed, failed, moved},
        zero_copy::{self, Sends, set_option},
    },
    session::SocketTeam,
    socket::timespec,
};

/// A stream socket of kind `K`.
pub(crate) struct StreamLink<K> {
    pub(super) socket: OwnedFd,
    pub(super) slots: Slots,
    pub(super) outgoing: Buffer,
    pub(super) incoming: Buffer,
    sends: Sends,
    low_water: Option<LowWater>,
    kind: PhantomData<fn() -> K>,
}

/// How a window is received with a low-water mark: that many bytes wake a receiver that waits (`SO_RCVLOWAT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LowWater {
    /// The mark in bytes.
    bytes: u32,
    /// Messages from the start of a window that are received with the mark. The others have at least as many bytes as the mark.
    messages: u32,
}

impl LowWater {
    /// Default for connections with BBR, chosen by measurement (METHODOLOGY.md). Each segment that GSO and GRO pass on in one piece has less
    /// than 64 KiB, so that at least three arrive before the receiver wakes.
    const OF_BBR: u32 = 128 << 10;

    /// Returns how windows of these messages are received with a mark; `None` if it would hold for less than half of a window.
    fn new(bytes: u32, slots: &Slots) -> Option<LowWater> {
        let rest = u32::try_from(u64::from(bytes).div_ceil(slots.bytes.max(1))).ok()?;
        (bytes > 1 && slots.count / 2 >= rest).then(|| LowWater { bytes, messages: slots.count - rest })
    }

    /// Returns the mark that the user chose.
    fn chosen(bytes: u32, socket: &OwnedFd, slots: &Slots) -> Result<Option<LowWater>> {
        let low_water = LowWater::new(bytes, slots);
        if low_water.is_some() {
            set_low_water(socket, bytes)?;
            let given = tcp_info::low_water(socket)?;
            set_low_water(socket, 1)?;
            if given != bytes {
                return Err(Error::unsupported(format!(
                    "this host limits --rcvlowat to {given} bytes, half of a receive buffer: choose less, \
                     or raise --socket-buffer or net.ipv4.tcp_rmem"
                )));
            }
        }
        Ok(low_water)
    }

    /// Returns the default mark, if both ends have BBR. Both ranks call it.
    fn by_default(cx: &Context<'_>, socket: &OwnedFd, slots: &Slots) -> Result<Option<LowWater>> {
        let Some(low_water) = LowWater::new(LowWater::OF_BBR, slots) else { return Ok(None) };
        let team: &SocketTeam = cx.fabric()?;
        let here = tcp_congestion(socket).is_ok_and(|name| is_bbr(&name));
        team.send_message(cx.peer, &here)?;
        let there: bool = team.receive_message(cx.peer, "congestion control")?;
        Ok((here && there).then_some(low_water))
    }
}

/// Returns whether a congestion control is a version of BBR.
fn is_bbr(name: &str) -> bool {
    name.starts_with("bbr")
}

/// Sets how many bytes wake a receiver that waits.
fn set_low_water(socket: &OwnedFd, bytes: u32) -> Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes.cast_signed()).map_err(failed)
}

/// Position in a window: the message, and the byte in it.
#[derive(Clone, Copy, Default)]
struct WindowPosition {
    slot: u32,
    byte: usize,
}

impl WindowPosition {
    /// Returns the start of a message.
    fn at(slot: u32) -> WindowPosition {
        WindowPosition { slot, byte: 0 }
    }

    /// Returns the remaining bytes of the current message.
    #[inline(always)]
    fn remaining(self, slots: &Slots) -> Range<usize> {
        let start = slots.offset(self.slot);
        start + self.byte..start + slots.bytes as usize
    }

    /// Advances by some bytes.
    #[inline(always)]
    fn advance(&mut self, bytes: usize, slots: &Slots) {
        self.byte += bytes;
        if self.byte == slots.bytes as usize {
            (self.slot, self.byte) = (self.slot + 1, 0);
        }
    }
}

/// Returns an error if a stream cannot carry the messages.
pub(super) fn carries(slots: Slots) -> Result<()> {
    match slots.bytes {
        0 => Err(Error::unsupported("a stream carries no empty message")),
        _ => Ok(()),
    }
}

impl<K: SocketKind> StreamLink<K> {
    const FLAGS: SendFlags =
        if K::ZERO_COPY { SendFlags::NOSIGNAL.union(zero_copy::FLAG) } else { SendFlags::NOSIGNAL };

    #[inline(always)]
    fn send_all(&mut self, mut range: Range<usize>) -> Result<()> {
        loop {
            let sent = send(&self.socket, &self.outgoing.bytes()[range.clone()], Self::FLAGS);
            if K::ZERO_COPY {
                self.sends.made += u64::from(sent.is_ok());
            }
            match sent {
                Ok(sent) if sent == range.len() => return Ok(()),
                Ok(sent) => range.start += sent,
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) if K::ZERO_COPY => {
                    self.sends.wait_for_notification(&self.socket).map_err(failed)?;
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    /// Waits until the kernel has released the buffers of all sends.
    #[inline(always)]
    fn wait_for_release(&mut self) -> Result<()> {
        if K::ZERO_COPY {
            self.sends.finish(&self.socket).map_err(failed)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn receive_all(&mut self, mut range: Range<usize>) -> Result<()> {
        loop {
            match recv(&self.socket, &mut self.incoming.bytes_mut()[range.clone()], RecvFlags::empty()) {
                Ok((read, _)) if read == range.len() => return Ok(()),
                Ok((0, _)) => return Err(closed()),
                Ok((read, _)) => range.start += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    #[inline(always)]
    fn message(&self, slot: u32) -> Range<usize> {
        let start = self.slots.offset(slot);
        start..start + self.slots.bytes as usize
    }

    /// Sends from a window until the kernel would block; returns whether the window is complete.
    #[inline(always)]
    fn send_some(&mut self, at: &mut WindowPosition) -> Result<bool> {
        let flags = Self::FLAGS.union(SendFlags::DONTWAIT);
        while at.slot < self.slots.count {
            let from = &self.outgoing.bytes()[at.remaining(&self.slots)];
            let sent = send(&self.socket, from, flags);
            if K::ZERO_COPY {
                self.sends.made += u64::from(sent.is_ok());
                if sent == Err(Errno::NOBUFS) {
                    self.sends.wait_for_notification(&self.socket).map_err(failed)?;
                    continue;
                }
            }
            match moved(sent)? {
                Moved::Bytes(sent) => at.advance(sent, &self.slots),
                Moved::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Receives into a window until the kernel would block; returns whether anything arrived.
    #[inline(always)]
    fn receive_some(&mut self, at: &mut WindowPosition) -> Result<bool> {
        let before = (at.slot, at.byte);
        while at.slot < self.slots.count {
            let into = &mut self.incoming.bytes_mut()[at.remaining(&self.slots)];
            match recv(&self.socket, into, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(closed()),
                Ok((read, _)) => at.advance(read, &self.slots),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(before != (at.slot, at.byte))
    }

    /// Waits until one of these events happens to the socket.
    fn wait(&self, events: PollFlags) -> Result<()> {
        match poll(&mut [PollFd::new(&self.socket, events)], Some(&timespec(TRANSFER_TIMEOUT))) {
            Ok(0) => Err(failed(Errno::AGAIN)),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }
}

impl<K: SocketKind> Link for StreamLink<K> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &SocketTeam = cx.fabric()?;
        let options = team.link_options();
        let is_tcp = !K::UNIX && options.socket.protocol == ipproto::TCP;
        cx.agree(carries(slots).and_then(|()| if is_tcp { Ok(()) } else { options.without_low_water() }))?;
        let socket = connect_peers::<K>(cx)?;
        let low_water = match options.low_water {
            Some(bytes) => cx.agree(LowWater::chosen(bytes, &socket, &slots))?,
            // A buffer that the user chose can be so small that the ends of the connection would take turns.
            None if is_tcp && options.socket.buffer.is_none() => LowWater::by_default(cx, &socket, &slots)?,
            None => None,
        };
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total()));
        Ok(StreamLink {
            socket,
            slots,
            outgoing,
            incoming,
            sends: Sends::default(),
            low_water,
            kind: PhantomData,
        })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.send_all(self.message(0))?;
        self.wait_for_release()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.receive_all(self.message(0))
    }

    // These methods make many system calls. Inlined, each pattern would have a copy of them.
    #[inline(never)]
    fn push(&mut self) -> Result<()> {
        for slot in 0..self.slots.count {
            self.send_all(self.message(slot))?;
        }
        self.wait_for_release()
    }

    #[inline(never)]
    fn pull(&mut self) -> Result<()> {
        let mut received = 0;
        if let Some(LowWater { bytes, messages }) = self.low_water {
            set_low_water(&self.socket, bytes)?;
            while received < messages {
                self.receive_all(self.message(received))?;
                received += 1;
            }
            // The last bytes of a window can be fewer than the mark, and would never wake the receiver.
            set_low_water(&self.socket, 1)?;
        }
        while received < self.slots.count {
            self.receive_all(self.message(received))?;
            received += 1;
        }
        Ok(())
    }

    /// Sends a window and receives one. Both ends do this at the same time, and two blocking sends could wait for each other.
    /// So each end sends until the kernel would block, then receives what has arrived. It waits only if neither can proceed.
    /// After the last send it receives the remaining messages with blocking calls.
    #[inline(never)]
    fn swap(&mut self) -> Result<()> {
        let (mut out, mut into) = (WindowPosition::default(), WindowPosition::default());
        while !self.send_some(&mut out)? {
            if !self.receive_some(&mut into)? {
                let receives = into.slot < self.slots.count;
                self.wait(if receives { PollFlags::IN | PollFlags::OUT } else { PollFlags::OUT })?;
            }
        }
        while into.slot < self.slots.count {
            self.receive_all(into.remaining(&self.slots))?;
            into = WindowPosition::at(into.slot + 1);
        }
        self.wait_for_release()
    }

    fn figures(&mut self) -> Result<Figures> {
        let mut figures = self.connections()?.map(ConnectionCounters::figures).unwrap_or_default();
        let copied = self.sends.copied_percent().map(Figure::Value);
        figures.extend(copied.map(|figure| ("copied_percent".to_owned(), figure)));
        Ok(figures)
    }

    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        if K::UNIX { Ok(None) } else { tcp_info::connection(&self.socket) }
    }

    /// Sends the first byte of the buffer.
    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        loop {
            match send(&self.socket, &self.outgoing.bytes()[..1], SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let mut byte = [0];
        loop {
            match recv(&self.socket, &mut byte, RecvFlags::empty()) {
                Ok((0, _)) => return Err(closed()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }
}

#[cfg(test)]
mod low_water_tests {
    use super::*;

    #[test]
    fn the_rest_of_a_window_has_at_least_the_bytes_of_the_mark() {
        let messages = |mark, bytes, count| {
            LowWater::new(mark, &Slots::new(bytes, count)).map(|low_water| low_water.messages)
        };
        assert_eq!(messages(128 << 10, 64 << 10, 64), Some(62));
        assert_eq!(messages(128 << 10, 100_000, 64), Some(62));
        assert_eq!(messages(128 << 10, 1 << 20, 64), Some(63));
        assert_eq!(messages(128 << 10, 4 << 10, 64), Some(32));
        for (mark, bytes, count) in
            [(128 << 10, 4 << 10, 63), (1, 1 << 20, 64), (1 << 30, 8, 64), (64, 64, 1)]
        {
            assert_eq!(messages(mark, bytes, count), None, "{mark} {bytes} {count}");
        }
    }

    #[test]
    fn versions_of_bbr_are_known() {
        assert!(["bbr", "bbr2", "bbr3"].into_iter().all(is_bbr));
        assert!(!["cubic", "reno", "dctcp", ""].into_iter().any(is_bbr));
    }
}
