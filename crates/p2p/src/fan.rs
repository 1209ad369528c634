//! `p2p.fan_in` and `p2p.fan_out`: windows of messages from many ranks to one, and from one to many.

use std::marker::PhantomData;

use ombx_core::{
    benchmark::{
        AxisValue, Benchmark, Case, Context, Kernel, Layout, Method, Metric, Role, Work,
        payload::{Check, Fill, Slots},
    },
    error::Result,
    two_sided::pattern::{Buffers, Link},
    unit::Rank,
};
use ombx_mpi::StarChannel;

/// Direction of the data.
pub(crate) trait Direction: 'static {
    /// Description of what is timed.
    const METHOD: Method;
    /// Role of the ranks that receive.
    const RECEIVER: Role;

    /// Runs an iteration of the rank in the center.
    fn center<L: Link>(link: &mut L) -> Result<()>;
    /// Runs the same iteration of each other rank.
    fn leaf<L: Link>(link: &mut L) -> Result<()>;
}

/// From all other ranks to the center.
pub(crate) enum In {}

impl Direction for In {
    const METHOD: Method = Method {
        timed: "on rank 0, a window of nonblocking receives from every other rank, waiting for all, and an acknowledgement \
                to each rank; each other rank sends its window and waits",
        untimed: "connections, buffers, filling and checking them",
        like: "the fan-in bandwidth of OMB 7.4, which needs several nodes",
    };
    const RECEIVER: Role = Role::Active;

    #[inline(always)]
    fn center<L: Link>(link: &mut L) -> Result<()> {
        link.pull()?;
        link.acknowledge()
    }

    #[inline(always)]
    fn leaf<L: Link>(link: &mut L) -> Result<()> {
        link.push()?;
        link.acknowledged()
    }
}

/// From the center to all other ranks.
pub(crate) enum Out {}

impl Direction for Out {
    const METHOD: Method = Method {
        timed: "on rank 0, a window of nonblocking sends to every other rank, waiting for all, and the acknowledgement of \
                each rank; each other rank posts its receives and waits",
        untimed: "connections, buffers, filling and checking them",
        like: "the fan-out bandwidth of OMB 7.4, which needs several nodes",
    };
    const RECEIVER: Role = Role::Passive;

    #[inline(always)]
    fn center<L: Link>(link: &mut L) -> Result<()> {
        link.push()?;
        link.acknowledged()
    }

    #[inline(always)]
    fn leaf<L: Link>(link: &mut L) -> Result<()> {
        link.pull()?;
        link.acknowledge()
    }
}

/// A direction over a link. Its buffers hold the messages of each partner in sequence.
pub(crate) struct Fan<D, L> {
    link: L,
    slots: Slots,
    rank: Rank,
    role: Role,
    partners: Vec<Rank>,
    direction: PhantomData<fn() -> D>,
}

/// Returns the fill pattern of messages to a rank. It differs for each receiver.
fn to(fill: Fill, receiver: Rank) -> Fill {
    Fill { round: fill.round ^ (u64::from(receiver.0) << 24), ..fill }
}

impl<D: Direction, L: Link> Kernel for Fan<D, L> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = D::METHOD;

    fn work(case: &Case) -> Work {
        let messages = u64::from(case.depth) * u64::from(case.ranks - 1);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = match case.choice() {
            Buffers::Single => Slots::shared(case.bytes.0, case.depth),
            Buffers::Multiple => Slots::new(case.bytes.0, case.depth),
        };
        let partners = cx.partners();
        cx.afford(2 * slots.total() * partners.len() as u64)?;
        let link = L::open(cx, slots)?;
        Ok(Fan { link, slots, rank: cx.rank(), role: cx.role, partners, direction: PhantomData })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (rank, slots, each) = (self.rank, self.slots, self.slots.total() as usize);
        for (partner, buffer) in self.partners.iter().zip(self.link.outgoing().chunks_exact_mut(each)) {
            to(fill, *partner).write(rank, slots, buffer);
        }
        for (partner, buffer) in self.partners.iter().zip(self.link.incoming().chunks_exact_mut(each)) {
            to(fill, rank).poison(*partner, slots, buffer);
        }
        Ok(())
    }

    #[inline]
    fn active(&mut self) -> Result<()> {
        D::center(&mut self.link)
    }

    #[inline]
    fn passive(&mut self) -> Result<()> {
        D::leaf(&mut self.link)
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        if self.role != D::RECEIVER {
            return Ok(Check::Passed);
        }
        let (rank, slots, each) = (self.rank, self.slots, self.slots.total() as usize);
        let arrived = self.partners.iter().zip(self.link.incoming().chunks_exact(each));
        let found = arrived.map(|(partner, buffer)| to(fill, rank).check(*partner, slots, buffer, rank));
        Ok(found.fold(Check::Passed, Check::and))
    }
}

ombx_core::inventory::submit! {
    Benchmark::of::<Fan<In, StarChannel>>("p2p.fan_in", "windows of messages from every other rank to the first")
        .streaming().layout(Layout::Star).axes(&[Buffers::AXIS])
        .osu("osu_bw_fan_in", "OSU MPI Bandwidth Congestion In Test")
}
ombx_core::inventory::submit! {
    Benchmark::of::<Fan<Out, StarChannel>>("p2p.fan_out", "windows of messages from the first rank to every other")
        .streaming().layout(Layout::Star).axes(&[Buffers::AXIS])
        .osu("osu_bw_fan_out", "OSU MPI Bandwidth Congestion Out Test")
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        measure::plan::{Effort, Plan, parse_sizes},
        testkit::{SimLink, measure},
    };

    use super::*;

    type Slow = SimLink<5000, 2>;
    type Broken = SimLink<5000, 2, 3>;

    fn plan(sizes: &str) -> Plan {
        Plan {
            sizes: Some(parse_sizes(sizes).unwrap()),
            depth: 8,
            effort: Effort::Fixed { iterations: 60, warmup: 2 },
            ..Plan::default()
        }
    }

    #[test]
    fn a_fan_counts_the_bytes_of_every_sender() {
        static FAN_IN: Benchmark =
            Benchmark::of::<Fan<In, Slow>>("sim.fan_in", "x").streaming().layout(Layout::Star);
        static FAN_OUT: Benchmark =
            Benchmark::of::<Fan<Out, Slow>>("sim.fan_out", "x").streaming().layout(Layout::Star);
        for ranks in 2..6 {
            let senders = f64::from(ranks) - 1.0;
            // A sender is busy with each of its windows. The last message and the acknowledgements take a latency each.
            for (bench, busy) in [(&FAN_IN, 16_000.0), (&FAN_OUT, 16_000.0 * senders)] {
                let row = measure(ranks, bench, &plan("1000")).unwrap().rows.remove(0);
                assert_eq!(
                    (row.check.clone(), row.ranks, row.pairs),
                    (Check::Passed, ranks, 1),
                    "{}",
                    row.key
                );
                assert_eq!(row.summary.as_ref().unwrap().median, busy + 10_000.0, "{}", row.key);
                let rate = senders * 8.0 * 1000.0 / (busy + 10_000.0) * 1e3;
                assert!((row.mb_per_s().unwrap().median - rate).abs() < 1e-9, "{}", row.key);
            }
        }
    }

    #[test]
    fn a_flipped_bit_fails() {
        static BAD_IN: Benchmark =
            Benchmark::of::<Fan<In, Broken>>("sim.bad_in", "x").streaming().layout(Layout::Star);
        static BAD_OUT: Benchmark =
            Benchmark::of::<Fan<Out, Broken>>("sim.bad_out", "x").streaming().layout(Layout::Star);
        for (bench, rank) in [(&BAD_IN, 0), (&BAD_OUT, 2)] {
            let row = measure(3, bench, &plan("64")).unwrap().rows.remove(0);
            let Check::Failed(m) = &row.check else { panic!("{row:?}") };
            assert_eq!((m.rank, m.byte, m.expected ^ m.actual), (Rank(rank), 2, 1));
        }
    }
}
