//! `p2p.unirandom`, `p2p.birandom`, `p2p.corandom` and `p2p.random_ring`: messages between partners that are drawn anew for each iteration.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, Kernel, Layout, Method, Metric, ParameterValue, Work,
        cold::Movable,
        derived::{self, by_datatype},
        memory::{BufferMemory, Cache, Copies},
        payload::{Datatype, Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    measure::session::Session,
    random::SplitMix64,
    result::Check,
    unit::Rank,
};
use ombx_mpi::{RoundsChannel, Step};

use crate::{neighbours::to_side, run_cached};

const UNTIMED: &str =
    "drawing the partners of 256 iterations, which repeat; buffers, filling and checking them";

/// A way to draw the partners of an iteration, and the messages between them.
trait Draw: 'static {
    const METHOD: Method;
    /// Messages per rank in an iteration.
    const MESSAGES: u64;
    /// Messages that a rank sends in a step.
    const SIDES: usize;
    /// Checked iterations that see as many messages as an iteration has: a rank sees the last one that arrived on a side.
    const ITERATIONS_PER_CHECK: u64;

    /// Returns the steps of a rank in a round.
    fn steps(round: u64, rank: Rank, ranks: u32) -> Vec<Step>;
    fn iterate(channel: &mut RoundsChannel) -> Result<()>;
}

/// Returns the random numbers of a round.
fn numbers(round: u64) -> SplitMix64 {
    SplitMix64(round << 32)
}

/// Returns a random number that is below `n`.
fn below(random: &mut SplitMix64, n: u32) -> u32 {
    ((u128::from(random.next_u64()) * u128::from(n)) >> 64) as u32
}

/// Returns the pairs of a round, as many as there are ranks: the rank that sends and the rank that receives.
fn pairs(round: u64, ranks: u32) -> impl Iterator<Item = [Rank; 2]> {
    let mut random = numbers(round);
    (0..ranks).map(move |_| {
        let from = below(&mut random, ranks);
        let to = (from + 1 + below(&mut random, ranks - 1)) % ranks;
        [from, to].map(Rank)
    })
}

/// Returns the step of a rank in a ring of all ranks in random order, which the round decides.
fn ring(round: u64, rank: Rank, ranks: u32) -> Step {
    let (mut random, mut order) = (numbers(round), (0..ranks).collect::<Vec<u32>>());
    for last in (1..ranks).rev() {
        order.swap(last as usize, below(&mut random, last + 1) as usize);
    }
    let at = order.iter().position(|other| *other == rank.0).unwrap_or_default();
    let neighbour = |place: usize| Some(Rank(order[place % order.len()]));
    Step { to: neighbour(at + 1), from: neighbour(at + order.len() - 1) }
}

/// Messages `D` of this rank.
struct Drawn<D> {
    channel: RoundsChannel,
    slots: Slots,
    rank: Rank,
    ranks: u32,
    /// Ranks whose complements the sides had when they were filled.
    before: [Rank; 2],
    draw: PhantomData<fn() -> D>,
}

impl<D: Draw> Drawn<D> {
    /// Returns the rank whose message to a side arrives first in the order of these iterations, which end with the earliest one; `None` if
    /// none does.
    fn sender(&self, iterations: impl Iterator<Item = u64>, side: usize) -> Option<Rank> {
        let rounds = RoundsChannel::ROUNDS as u64;
        let sender = |step: Step| if side == 0 { step.from } else { step.to };
        let of_iteration = |iteration: u64| {
            let steps = D::steps(iteration % rounds, self.rank, self.ranks);
            steps.into_iter().rev().find_map(sender)
        };
        iterations.take(rounds as usize).find_map(of_iteration)
    }
}

impl<D: Draw> Kernel for Drawn<D> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = D::METHOD;

    fn work(case: &Case) -> Work {
        let messages = D::MESSAGES * u64::from(case.ranks);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots =
            derived::typed(Slots::new(case.bytes.0, 1), case)?.copied(cx, RoundsChannel::SIDES as u64)?;
        let (rank, ranks) = (cx.rank(), cx.team.size());
        let channel = RoundsChannel::open(cx, slots, |round| D::steps(round as u64, rank, ranks))?;
        Ok(Drawn { channel, slots, rank, ranks, before: [rank; 2], draw: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, rank, each) = (self.slots, self.rank, self.slots.total() as usize);
        let next = self.channel.iterations();
        for side in 0..D::SIDES {
            // The complement of what arrives in the next iteration differs from it in every byte.
            let expected = self.sender([next].into_iter(), side).unwrap_or(rank);
            self.before[side] = expected;
            let part = side * each..(side + 1) * each;
            to_side(fill, side).write(rank, slots, &mut self.channel.outgoing()[part.clone()]);
            to_side(fill, side).poison(expected, slots, &mut self.channel.incoming()[part]);
        }
        Ok(())
    }

    fn iterations_per_check(_: &Case) -> u64 {
        D::ITERATIONS_PER_CHECK
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        D::iterate(&mut self.channel)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (slots, rank, each) = (self.slots, self.rank, self.slots.total() as usize);
        // Iterations that used this copy of the buffers, the last one first.
        let (end, step) = (self.channel.iterations(), slots.copies.count());
        let used = || (0..fill.iterations).map_while(move |back| end.checked_sub(1 + back * step));
        let mut found = Check::Passed;
        for side in 0..D::SIDES {
            let Some(sender) = self.sender(used(), side) else {
                continue;
            };
            let arrived = &self.channel.incoming()[side * each..(side + 1) * each];
            let before = self.before[side];
            found = found.and(to_side(fill, side).check_over(sender, before, slots, arrived, rank));
        }
        Ok(found)
    }
}

impl<D: Draw> Movable for Drawn<D> {
    fn copies(&self) -> Copies {
        self.slots.copies
    }

    ombx_core::forwards!(channel: move_to(offset: usize) -> ());
}

/// One message between the two ranks of each pair.
enum OneWay {}

impl Draw for OneWay {
    const METHOD: Method = Method {
        timed: "as many times as there are ranks, a blocking send of a random rank to another random one, \
                which receives it",
        untimed: UNTIMED,
        like: "IMB-P2P Unirandom, which draws in the timed region",
    };
    const MESSAGES: u64 = 1;
    const SIDES: usize = 1;
    const ITERATIONS_PER_CHECK: u64 = 2;

    fn steps(round: u64, rank: Rank, ranks: u32) -> Vec<Step> {
        let step = |[from, to]: [Rank; 2]| match rank {
            _ if rank == from => Some(Step { to: Some(to), from: None }),
            _ if rank == to => Some(Step { to: None, from: Some(from) }),
            _ => None,
        };
        pairs(round, ranks).filter_map(step).collect()
    }

    #[inline(always)]
    fn iterate(channel: &mut RoundsChannel) -> Result<()> {
        channel.one_way()
    }
}

/// One message in each direction between the two ranks of each pair.
enum BothWays {}

impl Draw for BothWays {
    const METHOD: Method = Method {
        timed: "as many times as there are ranks, two random ranks start a receive of the other's message, \
                send theirs, and wait",
        untimed: UNTIMED,
        like: "IMB-P2P Birandom, which draws in the timed region",
    };
    const MESSAGES: u64 = 2;
    const SIDES: usize = 1;
    const ITERATIONS_PER_CHECK: u64 = 3;

    fn steps(round: u64, rank: Rank, ranks: u32) -> Vec<Step> {
        let of_pair = |[one, other]: [Rank; 2]| match rank {
            _ if rank == one => Some(Step { to: Some(other), from: Some(other) }),
            _ if rank == other => Some(Step { to: Some(one), from: Some(one) }),
            _ => None,
        };
        pairs(round, ranks).filter_map(of_pair).collect()
    }

    #[inline(always)]
    fn iterate(channel: &mut RoundsChannel) -> Result<()> {
        channel.both_ways()
    }
}

/// One message to the next rank of a random ring.
enum Ring {}

impl Draw for Ring {
    const METHOD: Method = Method {
        timed: "on every rank of a ring in random order, the start of a receive from the previous rank, a \
                blocking send to the next one, and the wait",
        untimed: UNTIMED,
        like: "IMB-P2P Corandom, which draws in the timed region",
    };
    const MESSAGES: u64 = 1;
    const SIDES: usize = 1;
    const ITERATIONS_PER_CHECK: u64 = 1;

    fn steps(round: u64, rank: Rank, ranks: u32) -> Vec<Step> {
        vec![ring(round, rank, ranks)]
    }

    #[inline(always)]
    fn iterate(channel: &mut RoundsChannel) -> Result<()> {
        channel.both_ways()
    }
}

/// Messages to both neighbours in a random ring.
enum RingBothWays {}

impl Draw for RingBothWays {
    const METHOD: Method = Method {
        timed: "on every rank of a ring in random order, nonblocking receives from both neighbours, \
                nonblocking sends to them, and the wait for all",
        untimed: UNTIMED,
        like: "the randomly ordered ring of HPCC, which reports the mean over some orders; p2p.exchange \
               has the natural order",
    };
    const MESSAGES: u64 = 2;
    const SIDES: usize = 2;
    const ITERATIONS_PER_CHECK: u64 = 1;

    fn steps(round: u64, rank: Rank, ranks: u32) -> Vec<Step> {
        vec![ring(round, rank, ranks)]
    }

    #[inline(always)]
    fn iterate(channel: &mut RoundsChannel) -> Result<()> {
        channel.exchange()
    }
}

/// Returns the entry of a draw.
#[track_caller]
const fn entry<D: Draw>(
    name: &'static str,
    about: &'static str,
    calls: &'static [&'static str],
) -> Benchmark {
    let run_each = |session: &mut Session<'_>| by_datatype(session, run_cached::<Drawn<D>>);
    Benchmark::custom(name, about, Metric::Latency, D::METHOD, run_each)
        .iterates(calls, "t of the slowest rank")
        .sizes("0,1..4M")
        .with(&[Cache::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
        .made_of(derived::block_bytes, derived::check)
        .layout(Layout::Everyone { least: 2 })
}

const EXCHANGE: &[&str] = &["MPI_Irecv", "MPI_Send", "MPI_Wait"];

ombx_core::inventory::submit!(entry::<OneWay>(
    "p2p.unirandom",
    "random ranks send to random ranks",
    &["MPI_Send", "MPI_Recv"]
));
ombx_core::inventory::submit!(entry::<BothWays>(
    "p2p.birandom",
    "random pairs of ranks exchange messages",
    EXCHANGE
));
ombx_core::inventory::submit!(entry::<Ring>(
    "p2p.corandom",
    "every rank sends to the next one of a ring in random order",
    EXCHANGE
));
ombx_core::inventory::submit!(entry::<RingBothWays>(
    "p2p.random_ring",
    "every rank of a ring in random order exchanges messages with both neighbours",
    &["MPI_Irecv", "MPI_Isend", "MPI_Waitall"],
));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ROUNDS: u64 = RoundsChannel::ROUNDS as u64;

    fn all_steps<D: Draw>(round: u64, ranks: u32) -> Vec<(Rank, Step)> {
        let of = |rank| D::steps(round, rank, ranks).into_iter().map(move |step| (rank, step));
        (0..ranks).map(Rank).flat_map(of).collect()
    }

    /// Every message that is sent is received, and a round has as many as the work counts.
    #[test]
    fn messages_are_received() {
        fn check<D: Draw>() {
            for (ranks, round) in
                [2, 3, 8].into_iter().flat_map(|ranks| (0..20).map(move |round| (ranks, round)))
            {
                let steps = all_steps::<D>(round, ranks);
                let mut sent: Vec<_> =
                    steps.iter().filter_map(|(rank, step)| Some((*rank, step.to?))).collect();
                let mut received: Vec<_> =
                    steps.iter().filter_map(|(rank, step)| Some((step.from?, *rank))).collect();
                assert_eq!((sent.len() * D::SIDES) as u64, D::MESSAGES * u64::from(ranks));
                sent.sort_unstable();
                received.sort_unstable();
                assert_eq!(sent, received);
                assert!(sent.iter().all(|(from, to)| from != to));
            }
        }
        check::<OneWay>();
        check::<BothWays>();
        check::<Ring>();
        check::<RingBothWays>();
    }

    #[test]
    fn a_ring_has_all_ranks() {
        for round in 0..50 {
            let (mut at, mut seen) = (Rank(0), BTreeSet::new());
            while seen.insert(at) {
                at = ring(round, at, 7).to.unwrap();
            }
            assert_eq!((at, seen.len()), (Rank(0), 7));
        }
    }

    /// Each ordered pair is drawn about equally often, and so is each neighbour.
    #[test]
    fn all_pairs_are_drawn() {
        let ranks = 5;
        let mut counts = [[0u32; 5]; 2 * 5];
        for round in 0..ROUNDS {
            for [from, to] in pairs(round, ranks) {
                counts[from.0 as usize][to.0 as usize] += 1;
            }
            for rank in (0..ranks).map(Rank) {
                counts[5 + rank.0 as usize][ring(round, rank, ranks).to.unwrap().0 as usize] += 1;
            }
        }
        // 256 rounds have 1280 pairs; each of the 20 ordered ones is expected 64 times, with a standard deviation of 8.
        for (row, counts) in counts.iter().enumerate() {
            for (to, count) in counts.iter().enumerate().filter(|(to, _)| *to != row % 5) {
                assert!((24..104).contains(count), "{row} to {to}: {count}");
            }
        }
    }
}
