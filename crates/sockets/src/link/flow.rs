//! A stream socket between two ranks: each message is written by one `send` and read by one `recv`, unless the kernel takes
//! or gives less at a time.

use std::{marker::PhantomData, ops::Range, os::fd::OwnedFd};

use ombx_core::{
    benchmark::{
        context::Context,
        figure::{Figure, Figures},
        payload::Slots,
    },
    error::{Error, Result},
    two_sided::pattern::Link,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use super::{Kind, SILENCE, broken, buffer::Buffer, closed, connect};
use crate::{
    deadline::timespec,
    zero_copy::{self, Sends},
};

/// A stream socket of kind `K` with one peer.
pub(crate) struct Flow<K> {
    socket: OwnedFd,
    slots: Slots,
    outgoing: Buffer,
    incoming: Buffer,
    sends: Sends,
    kind: PhantomData<fn() -> K>,
}

/// How far a window has come: the message and the byte in it.
#[derive(Clone, Copy, Default)]
struct Progress {
    slot: u32,
    byte: usize,
}

impl Progress {
    /// What is left of the current message.
    #[inline(always)]
    fn rest(self, slots: &Slots) -> Range<usize> {
        let start = slots.offset(self.slot);
        start + self.byte..start + slots.bytes as usize
    }

    #[inline(always)]
    fn advance(&mut self, bytes: usize, slots: &Slots) {
        self.byte += bytes;
        if self.byte == slots.bytes as usize {
            (self.slot, self.byte) = (self.slot + 1, 0);
        }
    }
}

/// What one system call did.
enum Moved {
    Bytes(usize),
    Nothing,
}

#[inline(always)]
fn moved(result: rustix::io::Result<usize>) -> Result<Moved> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::AGAIN) => Ok(Moved::Nothing),
        Err(Errno::INTR) => Ok(Moved::Bytes(0)),
        Err(errno) => Err(broken(errno)),
    }
}

impl<K: Kind> Flow<K> {
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
                    self.sends.notified(&self.socket).map_err(broken)?;
                }
                Err(errno) => return Err(broken(errno)),
            }
        }
    }

    /// Returns when what was sent may be written again.
    #[inline(always)]
    fn sent(&mut self) -> Result<()> {
        if K::ZERO_COPY {
            self.sends.finish(&self.socket).map_err(broken)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn receive_all(&mut self, mut range: Range<usize>) -> Result<()> {
        loop {
            match recv(&self.socket, &mut self.incoming.bytes_mut()[range.clone()], RecvFlags::WAITALL) {
                Ok((read, _)) if read == range.len() => return Ok(()),
                Ok((0, _)) => return Err(closed()),
                Ok((read, _)) => range.start += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
            }
        }
    }

    #[inline(always)]
    fn message(&self, slot: u32) -> Range<usize> {
        let start = self.slots.offset(slot);
        start..start + self.slots.bytes as usize
    }

    /// Sends the rest of a window as far as the kernel takes it without waiting; whether all of it.
    #[inline(always)]
    fn send_some(&mut self, at: &mut Progress) -> Result<bool> {
        let flags = Self::FLAGS.union(SendFlags::DONTWAIT);
        while at.slot < self.slots.count {
            let from = &self.outgoing.bytes()[at.rest(&self.slots)];
            let sent = send(&self.socket, from, flags);
            if K::ZERO_COPY {
                self.sends.made += u64::from(sent.is_ok());
                if sent == Err(Errno::NOBUFS) {
                    self.sends.notified(&self.socket).map_err(broken)?;
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

    /// Receives what is there of a window without waiting; whether anything was.
    #[inline(always)]
    fn receive_some(&mut self, at: &mut Progress) -> Result<bool> {
        let before = (at.slot, at.byte);
        while at.slot < self.slots.count {
            let into = &mut self.incoming.bytes_mut()[at.rest(&self.slots)];
            match recv(&self.socket, into, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(closed()),
                Ok((read, _)) => at.advance(read, &self.slots),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
            }
        }
        Ok(before != (at.slot, at.byte))
    }

    /// Returns when the socket takes or, if so wished, gives something.
    fn wait(&self, receives: bool) -> Result<()> {
        let events = if receives { PollFlags::IN | PollFlags::OUT } else { PollFlags::OUT };
        match poll(&mut [PollFd::new(&self.socket, events)], Some(&timespec(SILENCE))) {
            Ok(0) => Err(broken(Errno::AGAIN)),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(broken(errno)),
        }
    }
}

impl<K: Kind> Link for Flow<K> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let sized = match slots.bytes {
            0 => Err(Error::unsupported("a stream carries no empty message")),
            _ => Ok(()),
        };
        cx.agree(sized)?;
        let socket = connect::<K>(cx)?;
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total()));
        Ok(Flow { socket, slots, outgoing, incoming, sends: Sends::default(), kind: PhantomData })
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.send_all(self.message(0))?;
        self.sent()
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.receive_all(self.message(0))
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        for slot in 0..self.slots.count {
            self.send_all(self.message(slot))?;
        }
        self.sent()
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        for slot in 0..self.slots.count {
            self.receive_all(self.message(slot))?;
        }
        Ok(())
    }

    /// Both ends send at the same time: whoever waited for room while the other does too would wait for ever. Each sends
    /// what the kernel takes; where it takes no more, it receives what is there, and only where nothing is there either it
    /// waits for one or the other. Once all is sent it receives the rest, waiting.
    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        let (mut out, mut into) = (Progress::default(), Progress::default());
        while !self.send_some(&mut out)? {
            if !self.receive_some(&mut into)? {
                self.wait(into.slot < self.slots.count)?;
            }
        }
        while into.slot < self.slots.count {
            self.receive_all(into.rest(&self.slots))?;
            into = Progress { slot: into.slot + 1, byte: 0 };
        }
        self.sent()
    }

    fn figures(&mut self) -> Result<Figures> {
        let copied = self.sends.copied_percent().map(Figure::Value);
        Ok(copied.map(|figure| ("copied_percent".to_owned(), figure)).into_iter().collect())
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        loop {
            match send(&self.socket, &self.outgoing.bytes()[..1], SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
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
                Err(errno) => return Err(broken(errno)),
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
