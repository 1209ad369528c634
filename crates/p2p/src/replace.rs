//! `p2p.sendrecv_replace`: a message that every rank of a periodic chain replaces by that of the previous one.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, ParameterValue, Work, derived,
        memory::BufferMemory,
        payload::{Check, Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    unit::Rank,
};
use ombx_mpi::{NeighbourChannel, Source};

/// A message on one rank. Each iteration moves all messages to the next ranks.
struct Replace {
    channel: Box<NeighbourChannel>,
    slots: Slots,
    rank: Rank,
    ranks: u32,
}

/// Returns the rank from which a message has come to `rank` in this many iterations.
fn origin(rank: Rank, ranks: u32, iterations: u64) -> Rank {
    let moved = (iterations % u64::from(ranks)) as u32;
    Rank((rank.0 + ranks - moved) % ranks)
}

impl Kernel for Replace {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method {
        timed: "on every rank of a periodic chain, one call that sends to the next rank and replaces the message by that of the \
                previous rank",
        untimed: "the buffer, filling and checking it",
        like: "SendRecv_Replace of IMB-P2P",
    };

    fn work(case: &Case) -> Work {
        let messages = u64::from(case.ranks);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = derived::typed(Slots::new(case.bytes.0, 1), case)?;
        cx.afford(4 * slots.total())?;
        let (channel, rank, ranks) = (NeighbourChannel::open(cx, slots)?, cx.rank(), cx.team.size());
        Ok(Replace { channel, slots, rank, ranks })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, self.channel.incoming());
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.channel.send_receive_replace()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let from = origin(self.rank, self.ranks, fill.iterations);
        Ok(fill.check(from, self.slots, self.channel.incoming(), self.rank))
    }
}

ombx_core::inventory::submit! {
    Benchmark::of::<Replace>(
        "p2p.sendrecv_replace",
        "every rank of a periodic chain replaces its message by that of the previous one",
    )
    .sizes("0,1..4M")
    .iterates(&["MPI_Sendrecv_replace"], "t of the slowest rank")
    .layout(Layout::Everyone { least: 2 })
    .with(&[Source::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
    .made_of(derived::block_bytes, derived::check)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_move_around_the_chain() {
        let origins = |iterations| [0, 1, 2].map(|rank| origin(Rank(rank), 3, iterations).0);
        assert_eq!([0, 1, 2, 3].map(origins), [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]);
    }
}
