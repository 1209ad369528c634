//! UDP between two ranks: messages that are lost are sent again and counted, and nobody waits for ever.
//!
//! A datagram is a [`word::Word`] of 8 bytes and the message. Messages are numbered; one that comes too early is put where it
//! belongs, and those between are asked for. Who waits and hears nothing for a while asks too: for messages from the first
//! that is missing on, or for a receipt. A rank that waits elsewhere has a [`end::Watchman`] who answers. So the data arrives
//! whole, the time of a sample holds what its losses cost, and `lost_messages` counts what had to be sent again.

mod end;
mod word;

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::IoSliceMut,
    net::{IpAddr, SocketAddr, UdpSocket},
    rc::Rc,
    time::Duration,
};

use ombx_core::{
    benchmark::{
        context::Context,
        figure::{Figure, Figures},
        payload::Slots,
    },
    error::{Error, Result},
    system::clock::Since,
    two_sided::pattern::Link,
};
use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvFlags, recv, recvmsg,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use self::{
    end::{AHEAD, End, Watchman},
    word::{HEAD, RECEIPT, What, Word},
};
use super::{MEET, Wishes, broken, buffer::Buffer, closed};
use crate::{
    team::{Ip, SocketTeam},
    token::Token,
};

/// Whoever hears nothing asks after this time, or after three round trips if that is longer.
const ASKS: Duration = Duration::from_millis(20);
/// Asking so often without hearing anything, the connection has failed.
const PATIENCE: u32 = 500;

/// UDP with one peer.
pub(crate) struct Datagrams {
    team: SocketTeam,
    end: Rc<End>,
    outgoing: Rc<Buffer>,
    incoming: Buffer,
    /// Messages that came early, by their number modulo [`AHEAD`].
    early: Vec<bool>,
    /// Messages before this number have been asked for.
    asked: u64,
    /// Messages before this number belong to what has been received.
    taken: u64,
}

impl Datagrams {
    /// The next datagram; a message is put where it belongs. `None` when nothing came in time.
    #[inline(always)]
    fn hear(&mut self) -> Result<Option<Word>> {
        let Datagrams { end, incoming, .. } = self;
        let mut head = [0; HEAD];
        let range = end.message(end.wanted.get());
        let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut incoming.bytes_mut()[range])];
        let came = recvmsg(&end.socket, &mut parts, &mut RecvAncillaryBuffer::default(), RecvFlags::empty());
        match came {
            Ok(came) if came.bytes < HEAD => Ok(Some(Word::new(What::Greeting, 0, 1))),
            Ok(_) => Ok(Some(Word::decode(head))),
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::INTR) => Ok(Some(Word::new(What::Greeting, 0, 1))),
            Err(Errno::CONNREFUSED) => Err(closed()),
            Err(errno) => Err(broken(errno)),
        }
    }

    /// Receives until all messages before `until` have arrived.
    #[inline(always)]
    fn receive_until(&mut self, until: u64) -> Result<()> {
        let mut asks = 0;
        while self.end.wanted.get() < until {
            let wanted = self.end.wanted.get();
            match self.hear()? {
                Some(Word { what: What::Message, number, .. }) if number == wanted => {
                    self.end.wanted.set(wanted + 1);
                    asks = 0;
                    self.skip_early();
                }
                Some(word) => self.other(word)?,
                None => {
                    asks += 1;
                    self.ask(Word::new(What::Ask, wanted, 0), asks)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn skip_early(&mut self) {
        loop {
            let wanted = self.end.wanted.get();
            let early = &mut self.early[(wanted % AHEAD) as usize];
            if !std::mem::take(early) {
                return;
            }
            self.end.wanted.set(wanted + 1);
        }
    }

    /// What is not the message that is waited for.
    #[cold]
    fn other(&mut self, word: Word) -> Result<()> {
        let wanted = self.end.wanted.get();
        let Word { what: What::Message, number, .. } = word else {
            return self.end.answer(word, self.outgoing.bytes());
        };
        // One slot holds every message of a window of equal ones.
        let ahead = match u64::from(self.end.slots.count) {
            1 => AHEAD,
            count => AHEAD.min(count),
        };
        if number <= wanted || number - wanted >= ahead {
            return Ok(());
        }
        let range = self.end.message(wanted);
        let to = self.end.message(number).start;
        self.incoming.bytes_mut().copy_within(range, to);
        self.early[(number % AHEAD) as usize] = true;
        let first = wanted.max(self.asked);
        if first < number {
            self.asked = number;
            self.end.lost.set(self.end.lost.get() + number - first);
            self.end.say(Word::new(What::Ask, first, number - first))?;
        }
        Ok(())
    }

    #[cold]
    fn ask(&mut self, word: Word, times: u32) -> Result<()> {
        if times >= PATIENCE {
            return Err(broken(Errno::AGAIN));
        }
        self.end.say(word)
    }

    fn meet(&self, peer: &str) -> Result<Duration> {
        let since = Since::now();
        let mut word = [0; HEAD + Token::BYTES];
        while since.elapsed() < MEET {
            let asked = Since::now();
            self.end.greet(0)?;
            while let Ok((bytes, _)) = recv(&self.end.socket, &mut word, RecvFlags::empty()) {
                let (head, token) = word.split_at(HEAD);
                let head = Word::decode(head.try_into().unwrap_or_default());
                if bytes == word.len() && head.what == What::Greeting && self.end.token.is(token) {
                    if head.count == 0 {
                        self.end.greet(1)?;
                    }
                    return Ok(asked.elapsed());
                }
            }
        }
        Err(Error::unsupported(format!("no datagram of {peer} arrived within {} s", MEET.as_secs())))
    }
}

fn socket(cx: &Context<'_>, team: &SocketTeam, wishes: &Wishes, slots: Slots) -> Result<UdpSocket> {
    let most = if wishes.ip == Ip::V4 { 65507 } else { 65527 } - HEAD as u64;
    if slots.bytes > most {
        return Err(Error::unsupported(format!("a datagram carries at most {most} bytes")));
    }
    let at: IpAddr = match (team.together(cx.rank(), cx.peer), wishes.ip) {
        (true, Ip::V4) => [127, 0, 0, 1].into(),
        (true, Ip::V6) => std::net::Ipv6Addr::LOCALHOST.into(),
        (false, Ip::V4) => [0u8; 4].into(),
        (false, Ip::V6) => [0u16; 8].into(),
    };
    let socket = UdpSocket::bind((at, 0));
    let socket = socket.map_err(|e| Error::unsupported(format!("this host has no {at}: {e}")))?;
    wishes.options.before_connecting(&socket)?;
    Ok(socket)
}

impl Link for Datagrams {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team: &SocketTeam = cx.fabric()?;
        let wishes = team.wishes();
        let socket = cx.agree(socket(cx, team, &wishes, slots))?;
        let failed = |e: std::io::Error| Error::fabric(format!("a datagram socket failed: {e}"));
        let port = socket.local_addr().map_err(failed)?.port();
        team.send(cx.peer, &port.to_le_bytes())?;
        let told: [u8; 2] = team.receive(cx.peer)?.try_into().unwrap_or_default();
        let address = cx.agree(team.address_of(cx.peer, wishes.ip))?;
        let connected = socket.connect(SocketAddr::new(address, u16::from_le_bytes(told)));
        let limited = connected.and_then(|()| Ok(set_socket_timeout(&socket, Timeout::Recv, Some(ASKS))?));
        cx.agree(limited.map_err(failed))?;
        let [next, wanted, lost] = [(); 3].map(|()| Cell::new(0));
        let end = Rc::new(End { socket, token: *team.token(), slots, next, wanted, lost });
        let [outgoing, incoming] = [(); 2].map(|()| Buffer::touched(slots.total()));
        let early = vec![false; AHEAD as usize];
        let link = Datagrams {
            team: team.clone(),
            end,
            outgoing: Rc::new(outgoing),
            incoming,
            early,
            asked: 0,
            taken: 0,
        };
        let met = link.meet(&format!("rank {}", cx.peer)).and_then(|round_trip| {
            let asks = ASKS.max(3 * round_trip).min(Duration::from_secs(2));
            set_socket_timeout(&link.end.socket, Timeout::Recv, Some(asks)).map_err(broken)
        });
        link.watch();
        cx.agree(met)?;
        Ok(link)
    }

    #[inline(always)]
    fn send(&mut self) -> Result<()> {
        let number = self.end.next.get();
        self.end.next.set(number + 1);
        self.end.post(number, self.outgoing.bytes())
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<()> {
        self.taken += 1;
        self.receive_until(self.taken)
    }

    #[inline(always)]
    fn push(&mut self) -> Result<()> {
        for _ in 0..self.end.slots.count {
            self.send()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn pull(&mut self) -> Result<()> {
        self.taken += u64::from(self.end.slots.count);
        self.receive_until(self.taken)
    }

    #[inline(always)]
    fn swap(&mut self) -> Result<()> {
        self.push()?;
        self.pull()
    }

    #[inline(always)]
    fn acknowledge(&mut self) -> Result<()> {
        self.end.say(Word::new(What::Receipt, self.end.wanted.get(), 0))
    }

    #[inline(always)]
    fn acknowledged(&mut self) -> Result<()> {
        let (sent, mut asks) = (self.end.next.get(), 0);
        loop {
            match self.hear()? {
                Some(Word { what: What::Receipt, number, .. }) if number == sent => return Ok(()),
                Some(word) => self.other(word)?,
                None => {
                    asks += 1;
                    self.ask(Word::new(What::Ask, sent, RECEIPT), asks)?;
                }
            }
        }
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(BTreeMap::from([("lost_messages".into(), Figure::Value(self.end.lost.get() as f64))]))
    }

    fn outgoing(&mut self) -> &mut [u8] {
        // The watchman sends what stands here: he goes while it changes, and returns with `incoming`.
        self.team.look_after(None);
        match Rc::get_mut(&mut self.outgoing) {
            Some(buffer) => buffer.bytes_mut(),
            None => &mut [],
        }
    }

    fn incoming(&mut self) -> &mut [u8] {
        self.watch();
        self.incoming.bytes_mut()
    }
}

impl Datagrams {
    fn watch(&self) {
        let watchman = Watchman { end: Rc::clone(&self.end), outgoing: Rc::clone(&self.outgoing) };
        self.team.look_after(Some(Rc::new(watchman)));
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.team.look_after(None);
    }
}
