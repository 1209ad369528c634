//! `p2p.fan_in` and `p2p.fan_out`: windows of messages from the ranks of many nodes to those of one, and from one to many.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, FanDirection, Kernel, Layout, Method, Metric, ParameterValue, Role, Work,
        derived::{self, by_datatype},
        memory::BufferMemory,
        payload::{Datatype, Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::Result,
    measure::{engine::run, session::Session},
    result::Check,
    two_sided::pattern::{Buffers, Link},
    unit::Rank,
};
use ombx_mpi::StarChannel;

use crate::STREAM;

/// Figure of both fans.
const FORMULA: &str = "P W S / t; t from the first sender's start to the last sender's end";

/// Traffic with each partner over a link. Its buffers hold the messages of each partner in sequence.
pub(crate) struct Fan<L> {
    link: L,
    slots: Slots,
    rank: Rank,
    role: Role,
    partners: Vec<Rank>,
}

/// Returns the fill pattern of messages to a rank. It differs for each receiver.
fn to(fill: Fill, receiver: Rank) -> Fill {
    Fill { round: fill.round ^ (u64::from(receiver.0) << 24), ..fill }
}

impl<L: Link> Kernel for Fan<L> {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "on each sender, a window of nonblocking sends to each of its partners, waiting for all, \
                and an acknowledgement of each partner; from the first start to the last end. The partners \
                post their receives, wait and acknowledge",
        untimed: "connections, buffers, filling and checking them, a barrier before each sample",
        like: "osu_bw_fan_in and osu_bw_fan_out of OMB 7.4, which divide by the mean of the senders' times \
               and refuse one node",
    };

    fn work(case: &Case) -> Work {
        let messages = u64::from(case.depth()) * u64::from(case.pairs);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let slots = match case.get() {
            Buffers::Single => Slots::shared(case.bytes.0, case.depth()),
            Buffers::Multiple => Slots::new(case.bytes.0, case.depth()),
        };
        let slots = derived::typed(slots, case)?;
        let partners = cx.partners();
        cx.afford(2 * slots.total() * partners.len() as u64)?;
        let link = L::open(cx, slots)?;
        Ok(Fan { link, slots, rank: cx.rank(), role: cx.role, partners })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (rank, slots, each) = (self.rank, self.slots, self.slots.total() as usize);
        // Memory of the direction that carries no data stays untouched.
        match self.role {
            Role::Active => {
                let messages = self.link.outgoing().chunks_exact_mut(each);
                self.partners.iter().zip(messages).for_each(|(to_rank, buffer)| {
                    to(fill, *to_rank).write(rank, slots, buffer);
                });
            }
            Role::Passive => {
                let messages = self.link.incoming().chunks_exact_mut(each);
                self.partners.iter().zip(messages).for_each(|(from_rank, buffer)| {
                    to(fill, rank).poison(*from_rank, slots, buffer);
                });
            }
        }
        Ok(())
    }

    /// Messages that share a buffer overwrite each other: the check sees the last one.
    fn iterations_per_check(case: &Case) -> u64 {
        match case.get() {
            Buffers::Single => case.depth().into(),
            Buffers::Multiple => 1,
        }
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        self.link.push()?;
        self.link.acknowledged()
    }

    #[inline(always)]
    fn passive(&mut self) -> Result<()> {
        self.link.pull()?;
        self.link.acknowledge()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        if self.role == Role::Active {
            return Ok(Check::Passed);
        }
        let (rank, slots, each) = (self.rank, self.slots, self.slots.total() as usize);
        let arrived = self.partners.iter().zip(self.link.incoming().chunks_exact(each));
        let found = arrived.map(|(partner, buffer)| to(fill, rank).check(*partner, slots, buffer, rank));
        Ok(found.fold(Check::Passed, Check::and))
    }
}

/// Returns the entry of a direction.
#[track_caller]
const fn entry(name: &'static str, about: &'static str, direction: FanDirection) -> Benchmark {
    type Messages = Fan<StarChannel>;
    let run_each = |session: &mut Session<'_>| by_datatype(session, run::<Messages>);
    Benchmark::custom(name, about, Metric::Bandwidth, <Messages as Kernel>::METHOD, run_each)
        .iterates(STREAM, FORMULA)
        .streaming()
        .layout(Layout::Fan(direction))
        .with(&[Buffers::PARAMETER, Datatype::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
        .made_of(derived::block_bytes, derived::check)
}

ombx_core::inventory::submit!(
    entry("p2p.fan_in", "windows of messages from all other nodes to the first", FanDirection::In)
        .osu("osu_bw_fan_in", "OSU MPI Bandwidth Congestion In Test")
);
ombx_core::inventory::submit!(
    entry("p2p.fan_out", "windows of messages from the first node to all others", FanDirection::Out)
        .osu("osu_bw_fan_out", "OSU MPI Bandwidth Congestion Out Test")
);

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Chosen, Depth},
        measure::plan::{Effort, Plan},
        result::Outcome,
        unit::parse_sizes,
    };
    use ombx_testkit::{SimLink, measure, measure_on_hosts};

    use super::*;

    type Slow = SimLink<5000, 2>;
    type Broken = SimLink<5000, 2, 3>;

    static FAN_IN: Benchmark = fan::<Slow>("sim.fan_in", FanDirection::In);
    static FAN_OUT: Benchmark = fan::<Slow>("sim.fan_out", FanDirection::Out);

    const fn fan<L: Link>(name: &'static str, direction: FanDirection) -> Benchmark {
        Benchmark::new::<Fan<L>>(name, "x").streaming().layout(Layout::Fan(direction))
    }

    fn plan(sizes: &str) -> Plan {
        Plan {
            sizes: Some(parse_sizes(sizes).unwrap()),
            chosen: Chosen::default().with(Depth(8)),
            effort: Effort::Fixed { iterations: 60, warmup: 2 },
            ..Plan::default()
        }
    }

    /// Nodes of a placement with a letter per rank, and ranks per node.
    const PLACEMENTS: [(&str, u64, u64); 6] = [
        ("ab", 2, 1),
        ("abc", 3, 1),
        ("aabb", 2, 2),
        ("aabbcc", 3, 2),
        ("abcabc", 3, 2),
        // On one node every rank counts as a node.
        ("aaaa", 4, 1),
    ];

    #[test]
    fn a_fan_counts_the_bytes_of_every_sender() {
        for (placement, nodes, per_node) in PLACEMENTS {
            let hosts: Vec<&str> = placement.split("").filter(|host| !host.is_empty()).collect();
            let (children, pairs) = (nodes - 1, (nodes - 1) * per_node);
            // A sender is busy with each of its windows. The last message and the acknowledgements take a latency each.
            for (bench, windows, senders) in [(&FAN_IN, 1, pairs), (&FAN_OUT, children, per_node)] {
                let row = measure_on_hosts(&hosts, bench, &plan("1000")).unwrap().rows.remove(0);
                let (key, work) = (format!("{placement}: {}", row.key), row.work.unwrap());
                assert_eq!(row.check, Check::Passed, "{key}");
                assert_eq!((u64::from(row.ranks), u64::from(row.pairs)), (nodes * per_node, pairs), "{key}");
                assert_eq!((work.ops, work.bytes), (8 * pairs, 8000 * pairs), "{key}");
                assert_eq!(row.samples.len() as u64, senders, "{key}: only senders are timed");
                let time = (16_000 * windows + 10_000) as f64;
                assert_eq!(row.summary.as_ref().unwrap().median, time, "{key}");
                let rate = (8000 * pairs) as f64 / time * 1e3;
                assert!((row.mb_per_s().unwrap().median - rate).abs() < 1e-9, "{key}");
            }
        }
    }

    #[test]
    fn unequal_nodes_are_a_skipped_row() {
        let row = measure_on_hosts(&["a", "a", "b"], &FAN_IN, &plan("8")).unwrap().rows.remove(0);
        let Outcome::Skipped(why) = &row.outcome else { panic!("{row:?}") };
        assert!(why.contains("the same number of ranks on every host"), "{why}");
    }

    #[test]
    fn a_flipped_bit_fails() {
        static BAD_IN: Benchmark = fan::<Broken>("sim.bad_in", FanDirection::In);
        static BAD_OUT: Benchmark = fan::<Broken>("sim.bad_out", FanDirection::Out);
        for (bench, receivers) in [(&BAD_IN, 0..1), (&BAD_OUT, 1..3)] {
            let row = measure(3, bench, &plan("64")).unwrap().rows.remove(0);
            let Check::Failed(m) = &row.check else { panic!("{row:?}") };
            assert!(receivers.contains(&m.rank.0), "{m:?}");
            assert_eq!((m.byte, m.expected ^ m.actual), (2, 1));
        }
    }
}
