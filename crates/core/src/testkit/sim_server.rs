//! A server of requests with a known service time, in virtual time.

use std::collections::VecDeque;

use super::thread_team::{SimMessage, ThreadTeam};
use crate::{
    benchmark::{Context, payload::Slots},
    error::Result,
    two_sided::request::{REPLY_BYTES, RequestLink},
    unit::Rank,
};

/// Time of one poll for replies, in nanoseconds.
const POLL_NS: u64 = 1000;
/// Value of `CORRUPT` that changes replies.
const REPLIES: usize = usize::MAX;
/// Length of the pause in nanoseconds.
pub const PAUSE_NS: u64 = 100_000_000;

/// Link whose other end serves requests one by one, `SERVICE` ns each. Messages take no time.
///
/// It pauses for [`PAUSE_NS`] before every `PAUSE`-th request of a round, if this is not 0. If `CORRUPT` is not 0, bit 0 of byte
/// `CORRUPT - 1` flips in the last request of each window; of replies if `CORRUPT` is `usize::MAX`.
pub struct SimServer<const SERVICE: u64, const PAUSE: u64 = 0, const CORRUPT: usize = 0> {
    team: ThreadTeam,
    peer: Rank,
    slots: Slots,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    echoes: Vec<u8>,
    sent: u64,
    arrived: u64,
    /// Replies that the server has made and that may arrive later.
    under_way: VecDeque<SimMessage>,
}

impl<const SERVICE: u64, const PAUSE: u64, const CORRUPT: usize> SimServer<SERVICE, PAUSE, CORRUPT> {
    fn message(&self, number: u64) -> std::ops::Range<usize> {
        let start = self.slots.offset((number % u64::from(self.slots.count)) as u32);
        start..start + self.slots.bytes as usize
    }

    fn send(&self, bytes: Vec<u8>) {
        self.team.send_message(self.peer, SimMessage { bytes, arrives_at: self.team.time.now() });
    }
}

impl<const SERVICE: u64, const PAUSE: u64, const CORRUPT: usize> RequestLink
    for SimServer<SERVICE, PAUSE, CORRUPT>
{
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let buffer = vec![0; slots.total() as usize];
        Ok(SimServer {
            team: cx.fabric::<ThreadTeam>()?.clone(),
            peer: cx.peer,
            slots,
            outgoing: buffer.clone(),
            incoming: buffer,
            echoes: Vec::new(),
            sent: 0,
            arrived: 0,
            under_way: VecDeque::new(),
        })
    }

    fn prepare(&mut self, requests: u64) -> Result<()> {
        self.echoes = vec![0xff; requests as usize * REPLY_BYTES];
        (self.sent, self.arrived) = (0, 0);
        Ok(())
    }

    fn send_some(&mut self, number: u64) -> Result<bool> {
        self.send(self.outgoing[self.message(number)].to_vec());
        self.sent += 1;
        Ok(true)
    }

    /// Waits in real time until the server has replied to every request, and takes the replies whose virtual time has come.
    fn replies(&mut self) -> Result<u64> {
        self.team.time.advance(POLL_NS);
        while self.arrived + (self.under_way.len() as u64) < self.sent {
            self.under_way.push_back(self.team.receive_message(self.peer)?);
        }
        let now = self.team.time.now();
        while self.under_way.front().is_some_and(|reply| reply.arrives_at <= now) {
            let Some(reply) = self.under_way.pop_front() else { break };
            let at = self.arrived as usize * REPLY_BYTES;
            self.echoes[at..at + REPLY_BYTES].copy_from_slice(&reply.bytes);
            self.arrived += 1;
        }
        Ok(self.arrived)
    }

    fn answer(&mut self, number: u64) -> Result<()> {
        let SimMessage { bytes, arrives_at } = self.team.receive_message(self.peer)?;
        let pauses = PAUSE > 0 && number > 0 && number.is_multiple_of(PAUSE);
        let pause = if pauses { PAUSE_NS } else { 0 };
        self.team.time.advance(arrives_at.saturating_sub(self.team.time.now()) + pause + SERVICE);
        let at = self.message(number);
        self.incoming[at.clone()].copy_from_slice(&bytes);
        let mut reply = number.to_le_bytes();
        match CORRUPT {
            0 => {}
            REPLIES => reply[1] ^= 1,
            byte if (number + 1).is_multiple_of(self.slots.count.into()) => {
                self.incoming[at][byte - 1] ^= 1;
            }
            _ => {}
        }
        self.send(reply.to_vec());
        Ok(())
    }

    fn echoes(&mut self) -> &[u8] {
        &self.echoes
    }

    fn outgoing(&mut self) -> &mut [u8] {
        &mut self.outgoing
    }

    fn incoming(&mut self) -> &mut [u8] {
        &mut self.incoming
    }
}
