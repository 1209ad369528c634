//! Requests and replies over a stream socket, for latency under an offered load.

use std::ops::Range;

use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    two_sided::{
        pattern::Link,
        scheduled_link::{REPLY_BYTES, RequestLink},
    },
};
use rustix::{
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use crate::link::{
    SocketKind,
    stream::StreamLink,
    transfer::{Moved, closed, failed, moved},
};

/// A stream socket on which the active rank sends without blocking, and the other rank waits for each request.
pub(crate) struct RequestStream<K> {
    stream: StreamLink<K>,
    /// Bytes of the current request that are sent.
    sent: usize,
    /// Replies of a round, one after the other as they arrive.
    echoes: Vec<u8>,
    /// Bytes of `echoes` that have arrived.
    arrived: usize,
}

impl<K> RequestStream<K> {
    #[inline(always)]
    fn message(&self, number: u64) -> Range<usize> {
        let slots = self.stream.slots;
        let start = slots.offset((number % u64::from(slots.count)) as u32);
        start..start + slots.bytes as usize
    }
}

impl<K: SocketKind> RequestLink for RequestStream<K> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        Ok(RequestStream { stream: StreamLink::open(cx, slots)?, sent: 0, echoes: Vec::new(), arrived: 0 })
    }

    fn prepare(&mut self, requests: u64) -> Result<()> {
        self.echoes.clear();
        self.echoes.resize(requests as usize * REPLY_BYTES, u8::MAX);
        self.arrived = 0;
        Ok(())
    }

    #[inline(always)]
    fn send_some(&mut self, number: u64) -> Result<bool> {
        let message = self.message(number);
        let rest = &self.stream.outgoing.bytes()[message.start + self.sent..message.end];
        if let Moved::Bytes(bytes) =
            moved(send(&self.stream.socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT))?
        {
            self.sent += bytes;
        }
        let complete = self.sent == message.len();
        if complete {
            self.sent = 0;
        }
        Ok(complete)
    }

    #[inline(always)]
    fn replies(&mut self) -> Result<u64> {
        match recv(&self.stream.socket, &mut self.echoes[self.arrived..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(closed()),
            Ok((bytes, _)) => self.arrived += bytes,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
        Ok((self.arrived / REPLY_BYTES) as u64)
    }

    #[inline(always)]
    fn answer(&mut self, number: u64) -> Result<()> {
        self.stream.receive_all(self.message(number))?;
        let reply = number.to_le_bytes();
        let mut sent = 0;
        while sent < reply.len() {
            if let Moved::Bytes(bytes) =
                moved(send(&self.stream.socket, &reply[sent..], SendFlags::NOSIGNAL))?
            {
                sent += bytes;
            }
        }
        Ok(())
    }

    fn echoes(&mut self) -> &[u8] {
        &self.echoes
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.stream.outgoing.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.stream.incoming.bytes_mut()
    }
}
