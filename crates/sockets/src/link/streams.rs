//! Several stream sockets between two ranks. The messages of a window are divided over them.
//!
//! One thread of each rank serves all sockets: each in turn gets or gives as much of its message as the kernel takes without
//! waiting, so that a slow stream delays no other. `poll` waits only when no socket can proceed.

use std::{array, marker::PhantomData, os::fd::OwnedFd};

use ombx_core::{
    benchmark::{ConnectionCounters, Context, payload::Slots},
    error::{Error, Result},
    two_sided::pattern::Link,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
};

use super::stream::{Moved, Progress, acknowledge, acknowledged, carries, connections_of, moved};
use crate::{
    link::{
        connections::{SocketKind, connect_peers},
        stream::{Buffer, TRANSFER_TIMEOUT, closed, failed},
    },
    session::SocketTeam,
    socket::timespec,
};

/// Maximum number of streams between two ranks, as in iperf3.
pub(crate) const MAX_STREAMS: u32 = 128;

/// Sockets of kind `K` between two ranks. Message i of a window goes over socket i modulo their number.
pub(crate) struct Streams<K> {
    sockets: Vec<OwnedFd>,
    slots: Slots,
    outgoing: Buffer,
    incoming: Buffer,
    /// Position of each socket in the window that is sent.
    out: Vec<Progress>,
    /// Position of each socket in the window that is received.
    into: Vec<Progress>,
    kind: PhantomData<fn() -> K>,
}

impl<K: SocketKind> Streams<K> {
    pub(super) fn over(sockets: Vec<OwnedFd>, slots: Slots) -> Streams<K> {
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total()));
        let [out, into] = [(); 2].map(|()| vec![Progress::default(); sockets.len()]);
        Streams { sockets, slots, outgoing, incoming, out, into, kind: PhantomData }
    }

    /// Sends and receives the first messages of a window, in each direction that is chosen.
    #[inline(always)]
    fn transfer<const SENDS: bool, const RECEIVES: bool>(&mut self, messages: u32) -> Result<()> {
        for (first, (out, into)) in (0..).zip(self.out.iter_mut().zip(&mut self.into)) {
            (*out, *into) = (Progress::at(first), Progress::at(first));
        }
        loop {
            let (mut proceeds, mut complete) = (false, true);
            if SENDS {
                proceeds |= self.send_some(messages, &mut complete)?;
            }
            if RECEIVES {
                proceeds |= self.receive_some(messages, &mut complete)?;
            }
            if complete {
                return Ok(());
            }
            if !proceeds {
                self.wait::<SENDS, RECEIVES>(messages)?;
            }
        }
    }

    /// Sends on every socket once, as much as the kernel takes. Returns whether it took anything.
    #[inline(always)]
    fn send_some(&mut self, messages: u32, complete: &mut bool) -> Result<bool> {
        let Streams { sockets, slots, outgoing, out, .. } = self;
        let (step, mut proceeds) = (sockets.len() as u32, false);
        for (number, at) in out.iter_mut().enumerate().filter(|(_, at)| at.slot < messages) {
            let from = &outgoing.bytes()[at.remaining(slots)];
            match moved(send(&sockets[number], from, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)) {
                Ok(Moved::Bytes(sent)) => {
                    at.advance(sent, slots, step);
                    proceeds = true;
                }
                Ok(Moved::Nothing) => {}
                Err(error) => return Err(of_stream(&error, number, step)),
            }
            *complete &= at.slot >= messages;
        }
        Ok(proceeds)
    }

    /// Receives on every socket once, as much as has arrived. Returns whether anything had.
    #[inline(always)]
    fn receive_some(&mut self, messages: u32, complete: &mut bool) -> Result<bool> {
        let Streams { sockets, slots, incoming, into, .. } = self;
        let (step, mut proceeds) = (sockets.len() as u32, false);
        for (number, at) in into.iter_mut().enumerate().filter(|(_, at)| at.slot < messages) {
            let to = &mut incoming.bytes_mut()[at.remaining(slots)];
            match recv(&sockets[number], to, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(of_stream(&closed(), number, step)),
                Ok((read, _)) => {
                    at.advance(read, slots, step);
                    proceeds = true;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(of_stream(&failed(errno), number, step)),
            }
            *complete &= at.slot >= messages;
        }
        Ok(proceeds)
    }

    /// Waits until a socket whose messages are incomplete can proceed.
    fn wait<const SENDS: bool, const RECEIVES: bool>(&self, messages: u32) -> Result<()> {
        let events = |number: usize| {
            let takes = SENDS && self.out[number].slot < messages;
            let gives = RECEIVES && self.into[number].slot < messages;
            let of = |is: bool, flag: PollFlags| if is { flag } else { PollFlags::empty() };
            of(takes, PollFlags::OUT) | of(gives, PollFlags::IN)
        };
        let last = self.sockets.len() - 1;
        let mut all: [PollFd<'_>; MAX_STREAMS as usize] = array::from_fn(|i| {
            let number = i.min(last);
            PollFd::new(&self.sockets[number], events(number))
        });
        match poll(&mut all[..=last], Some(&timespec(TRANSFER_TIMEOUT))) {
            Ok(0) => Err(failed(Errno::AGAIN)),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }
}

/// Returns the error of one stream, numbered from 1.
#[cold]
fn of_stream(error: &Error, number: usize, streams: u32) -> Error {
    Error::fabric(format!("stream {} of {streams}: {error}", number + 1))
}

impl<K: SocketKind> Link for Streams<K> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &SocketTeam = cx.fabric()?;
        let streams = team.link_options().streams;
        let fits = match slots.count >= streams {
            true => carries(slots),
            false => {
                Err(Error::unsupported(format!("{} messages do not occupy {streams} streams", slots.count)))
            }
        };
        cx.agree(fits)?;
        let sockets = (0..streams).map(|_| connect_peers::<K>(cx)).collect::<Result<_>>()?;
        Ok(Streams::over(sockets, slots))
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        self.transfer::<true, false>(1)
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.transfer::<false, true>(1)
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        self.transfer::<true, false>(self.slots.count)
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.transfer::<false, true>(self.slots.count)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.transfer::<true, true>(self.slots.count)
    }

    fn connections(&mut self) -> Result<Option<ConnectionCounters>> {
        connections_of::<K>(&self.sockets)
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        acknowledge(&self.sockets[0], self.outgoing.bytes())
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        acknowledged(&self.sockets[0])
    }

    fn outgoing(&mut self) -> &mut [u8] {
        self.outgoing.bytes_mut()
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.incoming.bytes_mut()
    }
}
