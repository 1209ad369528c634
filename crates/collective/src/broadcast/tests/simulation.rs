//! A broadcast along a binomial tree of links of known cost, in virtual time.

use crate::broadcast::kernel::Broadcast;
use ombx_core::{
    benchmark::{Context, payload::Slots},
    error::Result,
    team::Team,
    testkit::{SimMessage, ThreadTeam},
    unit::Rank,
};

/// Broadcast whose messages occupy the sender for `PER_BYTE` ns per byte and arrive `LATENCY` ns later, plus the delay of
/// their link. A rank sends to its largest subtree first.
pub(crate) struct SimBroadcast<const LATENCY: u64, const PER_BYTE: u64> {
    team: ThreadTeam,
    ranks: u32,
    buffer: Vec<u8>,
    bytes: usize,
}

impl<const LATENCY: u64, const PER_BYTE: u64> Broadcast for SimBroadcast<LATENCY, PER_BYTE> {
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team = cx.fabric::<ThreadTeam>()?.clone();
        let buffer = vec![0; slots.total() as usize];
        Ok(SimBroadcast { team, ranks: cx.team.size(), buffer, bytes: slots.bytes as usize })
    }

    fn broadcast(&mut self, root: Rank) -> Result<()> {
        let SimBroadcast { team, ranks, buffer, bytes } = self;
        let at = |relative: u32| Rank((relative + root.0) % *ranks);
        let me = (team.rank().0 + *ranks - root.0) % *ranks;
        // The lowest set bit of the rank gives the parent, the bits below it give the children.
        let mut bit = if me == 0 { ranks.next_power_of_two() } else { 1 << me.trailing_zeros() };
        if me != 0 {
            let message = team.receive_message(at(me - bit))?;
            team.time.advance(message.arrives_at.saturating_sub(team.time.now()));
            buffer[..*bytes].copy_from_slice(&message.bytes);
        }
        while bit > 1 {
            bit /= 2;
            if me + bit < *ranks {
                let to = at(me + bit);
                team.time.advance(*bytes as u64 * PER_BYTE);
                let arrives_at = team.time.now() + LATENCY + team.delay_to(to);
                team.send_message(to, SimMessage { bytes: buffer[..*bytes].to_vec(), arrives_at });
            }
        }
        Ok(())
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}
