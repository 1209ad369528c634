//! The end of a link: what it has sent, what it wants, and how it answers what the other end asks, at work or waiting elsewhere.

use std::{cell::Cell, io::IoSlice, net::UdpSocket, rc::Rc};

use ombx_core::{benchmark::payload::Slots, error::Result};
use rustix::{
    io::Errno,
    net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg},
};

use super::word::{HEAD, RECEIPT, What, Word};
use crate::{
    link::{broken, buffer::Buffer},
    post::Tend,
    token::Token,
};

/// Messages that may come before one that is missing.
pub(super) const AHEAD: u64 = 4096;

/// What both a link and its watchman need to answer.
pub(super) struct End {
    pub(super) socket: UdpSocket,
    pub(super) token: Token,
    pub(super) slots: Slots,
    /// Number of the next message to be sent.
    pub(super) next: Cell<u64>,
    /// Number of the first message that has not arrived.
    pub(super) wanted: Cell<u64>,
    /// Messages that had to be sent again, by either end as far as this one knows.
    pub(super) lost: Cell<u64>,
}

impl End {
    #[inline(always)]
    pub(super) fn message(&self, number: u64) -> std::ops::Range<usize> {
        let start = self.slots.offset((number % u64::from(self.slots.count)) as u32);
        start..start + self.slots.bytes as usize
    }

    #[inline(always)]
    pub(super) fn post(&self, number: u64, outgoing: &[u8]) -> Result<()> {
        #[cfg(test)]
        if crate::link::tests::loses() {
            return Ok(());
        }
        let head = Word::new(What::Message, number, 0).encode();
        let parts = [IoSlice::new(&head), IoSlice::new(&outgoing[self.message(number)])];
        loop {
            match sendmsg(&self.socket, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                // Where the kernel has no room it is as if the message had been lost on the way.
                Ok(_) | Err(Errno::NOBUFS) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
            }
        }
    }

    pub(super) fn say(&self, word: Word) -> Result<()> {
        #[cfg(test)]
        if crate::link::tests::loses() {
            return Ok(());
        }
        match send(&self.socket, &word.encode(), SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(errno) => Err(broken(errno)),
        }
    }

    pub(super) fn greet(&self, count: u64) -> Result<()> {
        let greeting = [&Word::new(What::Greeting, 0, count).encode()[..], self.token.bytes()].concat();
        match send(&self.socket, &greeting, SendFlags::NOSIGNAL) {
            // The other end may not listen yet.
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN | Errno::CONNREFUSED) => Ok(()),
            Err(errno) => Err(broken(errno)),
        }
    }

    /// Answers what the other end asks.
    pub(super) fn answer(&self, asked: Word, outgoing: &[u8]) -> Result<()> {
        match asked {
            Word { what: What::Greeting, count: 0, .. } => self.greet(1),
            Word { what: What::Ask, count: RECEIPT, number } => match number.checked_sub(self.wanted.get()) {
                // What it has sent has not all arrived.
                Some(missing @ 1..) => self.say(Word::new(What::Ask, self.wanted.get(), missing.min(AHEAD))),
                _ => self.say(Word::new(What::Receipt, self.wanted.get(), 0)),
            },
            Word { what: What::Ask, count, number } => {
                let sent = self.next.get();
                let end = if count == 0 { sent } else { sent.min(number.saturating_add(count)) };
                // Older messages have left the buffer, and have arrived.
                let oldest = sent.saturating_sub(AHEAD);
                for number in number.max(oldest)..end {
                    self.lost.set(self.lost.get() + 1);
                    self.post(number, outgoing)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Answers the other end while this rank waits elsewhere, with what stands in the buffer.
pub(super) struct Watchman {
    pub(super) end: Rc<End>,
    pub(super) outgoing: Rc<Buffer>,
}

impl Tend for Watchman {
    fn tend(&self) {
        let (mut word, socket) = ([0; HEAD], &self.end.socket);
        while let Ok((HEAD.., _)) = recv(socket, &mut word, RecvFlags::DONTWAIT | RecvFlags::PEEK) {
            let asked = Word::decode(word);
            if asked.what == What::Message && asked.number >= self.end.wanted.get() {
                // For the link, once this rank is back.
                return;
            }
            let _ = recv(socket, &mut word, RecvFlags::DONTWAIT);
            // Whoever asked asks again.
            let _ = self.end.answer(asked, self.outgoing.bytes());
        }
    }
}
