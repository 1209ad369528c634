//! A stream socket between two ranks. One `send` writes a message unless the kernel takes less at a time, and each `recv` reads what has
//! arrived of one.

use std::{marker::PhantomData, ops::Range, os::fd::OwnedFd, time::Duration};

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
    low_water: LowWater,
    kind: PhantomData<fn() -> K>,
}

/// Messages of a window for which a receiver that waits is woken by a number of bytes (`SO_RCVLOWAT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LowWater {
    /// The number of bytes.
    mark: u32,
    /// The first messages of a window, up to the last one behind which at least `mark` bytes of the window follow.
    messages: u32,
}

impl LowWater {
    /// Any byte wakes the receiver.
    const NONE: LowWater = LowWater { mark: 1, messages: 0 };

    /// Mark for a sender with BBR: two of the largest segments that GSO and GRO pass on in one piece (64 KiB). BBR paces by the rate that it
    /// finds. If each segment wakes the receiver, that rate is one at which pacing takes much of the sender's CPU time.
    const FOR_BBR: u32 = 2 << 16;

    /// Returns the default, which depends on the congestion control of the peer. Both ranks call it.
    fn for_sender(cx: &Context<'_>, socket: &OwnedFd, slots: &Slots) -> Result<LowWater> {
        let low_water = LowWater::of(LowWater::FOR_BBR, slots);
        if low_water == LowWater::NONE {
            return Ok(low_water);
        }
        let team: &SocketTeam = cx.fabric()?;
        let own = tcp_congestion(socket).unwrap_or_default();
        team.send_message(cx.peer, &own)?;
        let of_peer: String = team.receive_message(cx.peer, "congestion control")?;
        Ok(if of_peer.starts_with("bbr") { low_water } else { LowWater::NONE })
    }

    /// Returns the messages for which windows have a mark: at least half of a window, or none.
    fn of(mark: u32, slots: &Slots) -> LowWater {
        let rest = u64::from(mark).div_ceil(slots.bytes.max(1));
        match u32::try_from(rest) {
            Ok(rest) if mark > 1 && slots.count / 2 >= rest => {
                LowWater { mark, messages: slots.count - rest }
            }
            _ => LowWater::NONE,
        }
    }
}

/// Position in a window: the message, and the byte in it.
#[derive(Clone, Copy, Default)]
struct Progress {
    slot: u32,
    byte: usize,
}

impl Progress {
    /// Returns the start of a message.
    fn at(slot: u32) -> Progress {
        Progress { slot, byte: 0 }
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

/// Result of one system call.
pub(super) enum Moved {
    Bytes(usize),
    Nothing,
}

#[inline(always)]
pub(super) fn moved(result: rustix::io::Result<usize>) -> Result<Moved> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN) => Ok(Moved::Nothing),
        Err(Errno::INTR) => Ok(Moved::Bytes(0)),
        Err(errno) => Err(failed(errno)),
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

    /// Sets how many bytes wake a receiver that waits.
    #[inline(always)]
    fn set_low_water(&self, bytes: u32) -> Result<()> {
        set_option(&self.socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes.cast_signed()).map_err(failed)
    }

    #[inline(always)]
    fn message(&self, slot: u32) -> Range<usize> {
        let start = self.slots.offset(slot);
        start..start + self.slots.bytes as usize
    }

    /// Sends from a window until the kernel would block; returns whether the window is complete.
    #[inline(always)]
    fn send_some(&mut self, at: &mut Progress) -> Result<bool> {
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
    fn receive_some(&mut self, at: &mut Progress) -> Result<bool> {
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

    /// Waits until the socket takes bytes or, if `receives`, has bytes to read.
    fn wait(&self, receives: bool) -> Result<()> {
        let events = if receives { PollFlags::IN | PollFlags::OUT } else { PollFlags::OUT };
        match poll(&mut [PollFd::new(&self.socket, events)], Some(&timespec(TRANSFER_TIMEOUT))) {
            Ok(0) => Err(failed(Errno::AGAIN)),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }
}

impl<K: SocketKind> Link for StreamLink<K> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        cx.agree(carries(slots))?;
        let team: &SocketTeam = cx.fabric()?;
        let options = team.link_options();
        let is_tcp = !K::UNIX && options.socket.protocol == ipproto::TCP;
        cx.agree(if is_tcp { Ok(()) } else { options.without_low_water() })?;
        let socket = connect_peers::<K>(cx)?;
        let low_water = match options.low_water {
            Some(mark) => LowWater::of(mark, &slots),
            None if is_tcp => LowWater::for_sender(cx, &socket, &slots)?,
            None => LowWater::NONE,
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

    // The calls of a window are system calls, beside which one more call of a function takes no time.
    #[inline(never)]
    fn push(&mut self) -> Result<()> {
        for slot in 0..self.slots.count {
            self.send_all(self.message(slot))?;
        }
        self.wait_for_release()
    }

    #[inline(never)]
    fn pull(&mut self) -> Result<()> {
        let LowWater { mark, messages } = self.low_water;
        // The end of a window can have fewer bytes than the mark, and would never wake the receiver.
        for (mark, slots) in [(mark, 0..messages), (1, messages..self.slots.count)] {
            if messages > 0 {
                self.set_low_water(mark)?;
            }
            for slot in slots {
                self.receive_all(self.message(slot))?;
            }
        }
        Ok(())
    }

    /// Sends a window and receives one. Both ends do this at the same time, and two blocking sends could wait for each other.
    /// So each end sends until the kernel would block, then receives what has arrived. It waits only if neither can proceed.
    /// After the last send it receives the remaining messages with blocking calls.
    #[inline(never)]
    fn swap(&mut self) -> Result<()> {
        let (mut out, mut into) = (Progress::default(), Progress::default());
        while !self.send_some(&mut out)? {
            if !self.receive_some(&mut into)? {
                self.wait(into.slot < self.slots.count)?;
            }
        }
        while into.slot < self.slots.count {
            self.receive_all(into.remaining(&self.slots))?;
            into = Progress::at(into.slot + 1);
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

const PAGE: usize = 4096;

/// Bytes that start on a page boundary.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Returns a buffer whose pages the kernel has allocated.
    pub(crate) fn touched(len: u64) -> Buffer {
        let len = len as usize;
        let mut memory = vec![0; len + PAGE];
        // The kernel allocates a page at the first write.
        memory.fill(1);
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Buffer { memory, start, len }
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// A transfer that makes no progress for this time has failed.
pub(crate) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the error of a failed transfer.
#[cold]
pub(crate) fn failed(errno: Errno) -> Error {
    match errno {
        Errno::AGAIN => {
            Error::fabric(format!("a connection made no progress for {} s", TRANSFER_TIMEOUT.as_secs()))
        }
        Errno::CONNRESET | Errno::PIPE | Errno::CONNREFUSED => closed(),
        other => Error::fabric(format!("a connection failed: {other}")),
    }
}

/// Returns the error of a connection that the other rank closed.
#[cold]
pub(crate) fn closed() -> Error {
    Error::fabric("the other rank closed the connection")
}

#[cfg(test)]
mod low_water_tests {
    use super::*;

    #[test]
    fn the_rest_of_a_window_is_at_least_the_mark() {
        let messages = |mark, bytes, count| LowWater::of(mark, &Slots::new(bytes, count)).messages;
        assert_eq!(messages(128 << 10, 64 << 10, 64), 62);
        assert_eq!(messages(128 << 10, 100_000, 64), 62);
        assert_eq!(messages(128 << 10, 1 << 20, 64), 63);
        assert_eq!(messages(128 << 10, 4 << 10, 64), 32);
        for (mark, bytes, count) in
            [(128 << 10, 4 << 10, 63), (1, 1 << 20, 64), (1 << 30, 8, 64), (64, 64, 1)]
        {
            assert_eq!(messages(mark, bytes, count), 0, "{mark} {bytes} {count}");
        }
    }
}
