//! One end of a link: its counters, and its answers to requests of the other end.

use std::{cell::Cell, io::IoSlice, net::UdpSocket, rc::Rc};

use ombx_core::{benchmark::payload::Slots, error::Result};
use rustix::{
    io::Errno,
    net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg},
};

use super::header::{ACKNOWLEDGEMENT, Header, Kind, LENGTH};
use crate::{
    control::Token,
    link::stream::{Buffer, failed},
    session::IdleTask,
};

/// Maximum number of messages that may arrive before a missing one.
pub(super) const MAX_AHEAD: u64 = 4096;

/// State that a link and its [`Responder`] share.
pub(super) struct Endpoint {
    pub(super) socket: UdpSocket,
    pub(super) token: Token,
    pub(super) slots: Slots,
    /// Number of the next message to send.
    pub(super) next: Cell<u64>,
    /// Number of the first message that has not arrived.
    pub(super) wanted: Cell<u64>,
    /// Messages that were sent again, as far as this end knows.
    pub(super) lost: Cell<u64>,
}

impl Endpoint {
    #[inline(always)]
    pub(super) fn message(&self, number: u64) -> std::ops::Range<usize> {
        let start = self.slots.offset((number % u64::from(self.slots.count)) as u32);
        start..start + self.slots.bytes as usize
    }

    #[inline(always)]
    pub(super) fn send_message(&self, number: u64, outgoing: &[u8]) -> Result<()> {
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

    pub(super) fn send_header(&self, header: Header) -> Result<()> {
        #[cfg(test)]
        if crate::link::tests::loses() {
            return Ok(());
        }
        match send(&self.socket, &header.encode(), SendFlags::NOSIGNAL) {
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    pub(super) fn send_hello(&self, count: u64) -> Result<()> {
        let hello = [&Header::new(Kind::Hello, 0, count).encode()[..], self.token.bytes()].concat();
        match send(&self.socket, &hello, SendFlags::NOSIGNAL) {
            // The other end may have no socket yet.
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR | Errno::AGAIN | Errno::CONNREFUSED) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Answers a request of the other end.
    pub(super) fn answer(&self, request: Header, outgoing: &[u8]) -> Result<()> {
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
pub(super) struct Responder {
    pub(super) endpoint: Rc<Endpoint>,
    pub(super) outgoing: Rc<Buffer>,
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
