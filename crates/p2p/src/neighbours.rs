//! Messages between neighbours: of a chain (`p2p.pingping`, `p2p.sendrecv`, `p2p.exchange`, `p2p.sendrecv_replace`) and of a grid
//! (`p2p.halo`).

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, Pairs, ParameterValue, Work,
        cold::Movable,
        derived::{self, by_datatype},
        memory::{BufferMemory, Cache, Copies},
        payload::{Datatype, Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Dimensions, HaloChannel, Holder, NeighbourChannel, Source};

use crate::run_cached;

const UNTIMED: &str = "buffers, filling and checking them";
const FORMULA: &str = "t of the slowest rank";

/// Messages of one iteration. Every rank makes the same calls.
pub(crate) trait Meeting: 'static {
    const METHOD: Method;
    /// Messages that a rank sends: one to the right, or also one to the left.
    const SIDES: u32;

    fn iterate(channel: &mut NeighbourChannel) -> Result<()>;
}

/// A meeting of neighbours on one rank. `H` holds the channel.
pub(crate) struct Neighbours<M, H = Box<NeighbourChannel>> {
    channel: H,
    slots: Slots,
    rank: Rank,
    /// Right neighbour, then left neighbour.
    neighbours: [Rank; 2],
    meeting: PhantomData<fn() -> M>,
}

/// Returns the fill pattern of messages to a side of a rank, such as the right (0) and the left (1).
pub(crate) fn to_side(fill: Fill, side: usize) -> Fill {
    Fill { round: fill.round ^ ((side as u64) << 24), ..fill }
}

impl<M: Meeting, H: Holder<Box<NeighbourChannel>>> Kernel for Neighbours<M, H> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = M::METHOD;

    fn work(case: &Case) -> Work {
        let messages = u64::from(M::SIDES) * u64::from(case.ranks);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = derived::typed(Slots::new(case.bytes.0, 1), case)?.copied(cx, 2)?;
        cx.afford(2 * slots.copies.total(2 * slots.total()) + slots.extra_bytes())?;
        let channel = cx.agree(H::hold(NeighbourChannel::open(cx, slots)?))?;
        let (rank, neighbours) = (cx.rank(), cx.neighbours());
        Ok(Neighbours { channel, slots, rank, neighbours, meeting: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, rank, each, sides) =
            (self.slots, self.rank, self.slots.total() as usize, M::SIDES as usize);
        let channel = self.channel.object();
        for (side, buffer) in channel.outgoing().chunks_exact_mut(each).take(sides).enumerate() {
            to_side(fill, side).write(rank, slots, buffer);
        }
        for (side, buffer) in channel.incoming().chunks_exact_mut(each).take(sides).enumerate() {
            to_side(fill, side).poison(self.neighbours[1 - side], slots, buffer);
        }
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        M::iterate(self.channel.object())
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        M::iterate(self.channel.object())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (slots, rank, neighbours) = (self.slots, self.rank, self.neighbours);
        let arrived =
            self.channel.object().incoming().chunks_exact(slots.total() as usize).take(M::SIDES as usize);
        let found = arrived
            .enumerate()
            .map(|(side, buffer)| to_side(fill, side).check(neighbours[1 - side], slots, buffer, rank));
        Ok(found.fold(Check::Passed, Check::and))
    }
}

impl<M: Meeting> Movable for Neighbours<M> {
    fn copies(&self) -> Copies {
        self.slots.copies
    }

    ombx_core::forwards!(channel: move_to(offset: usize) -> ());
}

/// Returns the entry of a meeting.
#[track_caller]
const fn meeting<M: Meeting>(name: &'static str, about: &'static str) -> Benchmark {
    Benchmark::custom(name, about, Metric::Latency, M::METHOD, |session| {
        by_datatype(session, run_cached::<Neighbours<M>>)
    })
    .made_of(derived::block_bytes, derived::check)
    .sizes("0,1..4M")
}

/// Two ranks send to each other at the same time.
pub(crate) enum PingPing {}

impl Meeting for PingPing {
    const METHOD: Method = Method {
        timed: "on both ranks, a nonblocking send, a blocking receive of the other rank's message, and the \
                wait for the send; the figure is the time of rank 0, with --pairs that of the slowest \
                first rank",
        untimed: UNTIMED,
        like: "IMB PingPing",
    };
    const SIDES: u32 = 1;

    #[inline(always)]
    fn iterate(channel: &mut NeighbourChannel) -> Result<()> {
        channel.ping_ping()
    }
}

/// Each rank of a periodic chain sends to the right and receives from the left.
pub(crate) enum SendReceive {}

impl Meeting for SendReceive {
    const METHOD: Method = Method {
        timed: "on every rank of a periodic chain, one call that sends to the next rank and receives from \
                the previous one",
        untimed: UNTIMED,
        like: "IMB Sendrecv, which prints minimum, maximum and mean over ranks",
    };
    const SIDES: u32 = 1;

    #[inline(always)]
    fn iterate(channel: &mut NeighbourChannel) -> Result<()> {
        channel.send_receive()
    }
}

/// Each rank of a periodic chain exchanges messages with both neighbours.
pub(crate) enum Exchange {}

impl Meeting for Exchange {
    const METHOD: Method = Method {
        timed: "on every rank of a periodic chain, nonblocking sends to both neighbours, blocking receives \
                from both, and the wait for the sends",
        untimed: UNTIMED,
        like: "IMB Exchange, which prints minimum, maximum and mean over ranks",
    };
    const SIDES: u32 = 2;

    #[inline(always)]
    fn iterate(channel: &mut NeighbourChannel) -> Result<()> {
        channel.exchange()
    }
}

pub(crate) const CHAIN: Layout = Layout::Everyone { least: 2 };

ombx_core::inventory::submit!(
    meeting::<PingPing>("p2p.pingping", "two ranks send to each other at the same time")
        .iterates(&["MPI_Isend", "MPI_Recv", "MPI_Wait"], "t")
        .layout(Layout::Pairs(Pairs::One))
        .with(&[
            Source::PARAMETER,
            Cache::PARAMETER,
            Datatype::PARAMETER,
            MESSAGE_TYPE,
            BufferMemory::PARAMETER
        ])
);
ombx_core::inventory::submit!(
    meeting::<SendReceive>("p2p.sendrecv", "every rank of a periodic chain sends to the next one")
        .iterates(&["MPI_Sendrecv"], FORMULA)
        .layout(CHAIN)
        .with(&[
            Source::PARAMETER,
            Cache::PARAMETER,
            Datatype::PARAMETER,
            MESSAGE_TYPE,
            BufferMemory::PARAMETER
        ])
);
ombx_core::inventory::submit!(
    meeting::<Exchange>(
        "p2p.exchange",
        "every rank of a periodic chain exchanges messages with both neighbours"
    )
    .iterates(&["MPI_Isend", "MPI_Recv", "MPI_Waitall"], FORMULA)
    .layout(CHAIN)
    .with(&[Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);

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
        timed: "on every rank of a periodic chain, one call that sends to the next rank and replaces the \
                message by that of the previous rank",
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

ombx_core::inventory::submit!(
    Benchmark::new::<Replace>(
        "p2p.sendrecv_replace",
        "every rank of a periodic chain replaces its message by that of the previous one",
    )
    .sizes("0,1..4M")
    .iterates(&["MPI_Sendrecv_replace"], "t of the slowest rank")
    .layout(Layout::Everyone { least: 2 })
    .with(&[Source::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
    .made_of(derived::block_bytes, derived::check)
);

const METHOD: Method = Method {
    timed: "on every rank of a periodic grid, nonblocking receives from the neighbours in each dimension, \
            nonblocking sends to them, and the wait for all",
    untimed: "buffers, filling and checking them",
    like: "IMB-P2P Stencil2D and Stencil3D; none in OMB",
};

/// An exchange with the neighbours of a rank.
struct Halo {
    channel: HaloChannel,
    slots: Slots,
    rank: Rank,
    neighbours: Vec<Rank>,
}

impl Kernel for Halo {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = METHOD;

    fn work(case: &Case) -> Work {
        // Every rank has the same number of neighbours.
        let sides = case.get::<Dimensions>().neighbours(Rank(0), case.ranks).len() as u64;
        let messages = sides * u64::from(case.ranks);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let neighbours = case.get::<Dimensions>().neighbours(cx.rank(), cx.team.size());
        let slots = derived::typed(Slots::new(case.bytes.0, 1), case)?.copied(cx, neighbours.len() as u64)?;
        Ok(Halo { channel: HaloChannel::open(cx, &neighbours, slots)?, slots, rank: cx.rank(), neighbours })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, rank, each) = (self.slots, self.rank, self.slots.total() as usize);
        for (side, buffer) in self.channel.outgoing().chunks_exact_mut(each).enumerate() {
            to_side(fill, side).write(rank, slots, buffer);
        }
        let arriving = self.channel.incoming().chunks_exact_mut(each).zip(&self.neighbours);
        for (side, (buffer, neighbour)) in arriving.enumerate() {
            to_side(fill, side ^ 1).poison(*neighbour, slots, buffer);
        }
        Ok(())
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.channel.exchange()
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        self.channel.exchange()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (slots, rank) = (self.slots, self.rank);
        let arrived = self.channel.incoming().chunks_exact(slots.total() as usize).zip(&self.neighbours);
        let found = arrived.enumerate().map(|(side, (buffer, neighbour))| {
            to_side(fill, side ^ 1).check(*neighbour, slots, buffer, rank)
        });
        Ok(found.fold(Check::Passed, Check::and))
    }
}

impl Movable for Halo {
    fn copies(&self) -> Copies {
        self.slots.copies
    }

    ombx_core::forwards!(channel: move_to(offset: usize) -> ());
}

ombx_core::inventory::submit!(
    Benchmark::custom(
        "p2p.halo",
        "every rank of a periodic grid exchanges messages with its neighbours in each dimension",
        Metric::Latency,
        METHOD,
        |session| by_datatype(session, run_cached::<Halo>),
    )
    .iterates(&["MPI_Irecv", "MPI_Isend", "MPI_Waitall"], "t of the slowest rank")
    .sizes("0,1..4M")
    .layout(Layout::Everyone { least: 2 })
    .with(&[
        Dimensions::PARAMETER,
        Cache::PARAMETER,
        Datatype::PARAMETER,
        MESSAGE_TYPE,
        BufferMemory::PARAMETER
    ])
    .made_of(derived::block_bytes, derived::check)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_move_around_the_chain() {
        let origins = |iterations| [0, 1, 2].map(|rank| origin(Rank(rank), 3, iterations).0);
        assert_eq!([0, 1, 2, 3].map(origins), [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]);
    }
}
