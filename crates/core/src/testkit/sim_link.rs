//! A link of known latency and time per byte, in virtual time.

use super::thread_team::{SimMessage, ThreadTeam};
use crate::{
    benchmark::{Context, payload::Slots},
    error::Result,
    two_sided::pattern::Link,
    unit::Rank,
};

/// Link whose messages occupy the sender for `PER_BYTE` ns per byte and arrive `LATENCY` ns later, on the receiver's clock.
///
/// If `CORRUPT` is not 0, bit 0 of byte `CORRUPT - 1` flips in each message that has this byte.
pub struct SimLink<const LATENCY: u64, const PER_BYTE: u64, const CORRUPT: usize = 0> {
    team: ThreadTeam,
    partners: Vec<Rank>,
    slots: Slots,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl<const LATENCY: u64, const PER_BYTE: u64, const CORRUPT: usize> SimLink<LATENCY, PER_BYTE, CORRUPT> {
    fn send_message(&self, to: Rank, mut bytes: Vec<u8>) {
        self.team.time.advance(bytes.len() as u64 * PER_BYTE);
        if let Some(byte) = CORRUPT.checked_sub(1).and_then(|at| bytes.get_mut(at)) {
            *byte ^= 1;
        }
        let arrives_at = self.team.time.now() + LATENCY + self.team.delay_to(to);
        self.team.send_message(to, SimMessage { bytes, arrives_at });
    }

    fn receive_message(&self, from: Rank) -> Result<Vec<u8>> {
        let message = self.team.receive_message(from)?;
        self.team.time.advance(message.arrives_at.saturating_sub(self.team.time.now()));
        Ok(message.bytes)
    }

    /// Returns the offset of the message of a slot from or to a partner.
    fn start(&self, partner: usize, slot: u32) -> usize {
        partner * self.slots.total() as usize + self.slots.offset(slot)
    }

    fn send_slot(&self, slot: u32) {
        for (at, partner) in self.partners.iter().enumerate() {
            let start = self.start(at, slot);
            self.send_message(*partner, self.outgoing[start..start + self.slots.bytes as usize].to_vec());
        }
    }

    fn receive_slot(&mut self, slot: u32) -> Result<()> {
        for (at, partner) in self.partners.iter().enumerate() {
            let bytes = self.receive_message(*partner)?;
            let start = self.start(at, slot);
            self.incoming[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

impl<const LATENCY: u64, const PER_BYTE: u64, const CORRUPT: usize> Link
    for SimLink<LATENCY, PER_BYTE, CORRUPT>
{
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self> {
        let team = cx.fabric::<ThreadTeam>()?.clone();
        let partners = cx.partners();
        let buffer = vec![0; slots.total() as usize * partners.len()];
        Ok(SimLink { team, partners, slots, outgoing: buffer.clone(), incoming: buffer })
    }

    fn send(&mut self) -> Result<()> {
        self.send_slot(0);
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        self.receive_slot(0)
    }

    fn push(&mut self) -> Result<()> {
        (0..self.slots.count).for_each(|slot| self.send_slot(slot));
        Ok(())
    }

    fn pull(&mut self) -> Result<()> {
        (0..self.slots.count).try_for_each(|slot| self.receive_slot(slot))
    }

    fn swap(&mut self) -> Result<()> {
        self.push()?;
        self.pull()
    }

    fn acknowledge(&mut self) -> Result<()> {
        self.partners.iter().for_each(|partner| self.send_message(*partner, Vec::new()));
        Ok(())
    }

    fn acknowledged(&mut self) -> Result<()> {
        self.partners.iter().try_for_each(|partner| self.receive_message(*partner).map(|_| ()))
    }

    fn outgoing(&mut self) -> &mut [u8] {
        &mut self.outgoing
    }

    fn incoming(&mut self) -> &mut [u8] {
        &mut self.incoming
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        benchmark::{Benchmark, Chosen, Depth, ParameterValue, payload::Check},
        measure::plan::{Effort, Plan, Verify},
        result::Outcome,
        sizes::parse_sizes,
        testkit::measure,
        two_sided::pattern::{
            BiStream, Bidirectional, Buffers, LinkPattern, PatternKernel, PingPong, Semidirectional, Stream,
            Unidirectional,
        },
    };

    type Slow = SimLink<5000, 2>;
    type Broken = SimLink<5000, 2, 3>;

    static PING: Benchmark =
        Benchmark::of::<PatternKernel<PingPong, Slow>>("sim.latency", "ping-pong of known cost");
    static STREAM: Benchmark =
        Benchmark::of::<PatternKernel<Stream, Slow>>("sim.bw", "stream of known cost").streaming();
    static PAIRS: Benchmark = Benchmark::of::<PatternKernel<Stream, Slow>>("sim.pairs", "streams")
        .streaming()
        .layout(crate::benchmark::Layout::Pairs(crate::benchmark::Pairs::Most));
    static BAD_PING: Benchmark =
        Benchmark::of::<PatternKernel<PingPong, Broken>>("sim.bad_latency", "flips a bit");
    static BAD_STREAM: Benchmark =
        Benchmark::of::<PatternKernel<Stream, Broken>>("sim.bad_bw", "flips a bit").streaming();

    fn plan(sizes: &str) -> Plan {
        Plan {
            sizes: Some(parse_sizes(sizes).unwrap()),
            chosen: Chosen::default().with(Depth(8)),
            effort: Effort::Fixed { iterations: 60, warmup: 2 },
            ..Plan::default()
        }
    }

    #[test]
    fn the_latency_is_half_a_ping_pong() {
        let memory = measure(2, &PING, &plan("0,1000")).unwrap();
        let medians: Vec<f64> = memory.rows.iter().map(|r| r.summary.as_ref().unwrap().median).collect();
        assert_eq!(medians, [5000.0, 7000.0]);
        assert!(memory.rows.iter().all(|r| r.check == Check::Passed && r.outcome == Outcome::Ok));
    }

    #[test]
    fn a_stream_takes_the_time_of_all_messages_and_one_acknowledgement() {
        let row = measure(2, &STREAM, &plan("1000")).unwrap().rows.remove(0);
        let iteration_ns = 8.0 * 1000.0 * 2.0 + 5000.0 + 5000.0;
        assert_eq!(row.summary.as_ref().unwrap().median, iteration_ns);
        assert!((row.mb_per_s().unwrap().median - 8.0 * 1000.0 / iteration_ns * 1e3).abs() < 1e-9);
        assert!((row.messages_per_s().unwrap().median - 8.0 / iteration_ns * 1e9).abs() < 1e-3);
    }

    /// Returns the bandwidth in MB/s and the time of a leg in nanoseconds.
    fn figures(bench: &'static Benchmark, depth: u32) -> (f64, f64) {
        let plan = Plan { chosen: Chosen::default().with(Depth(depth)), ..plan("1000") };
        let row = measure(2, bench, &plan).unwrap().rows.remove(0);
        assert_eq!(row.check, Check::Passed);
        (row.mb_per_s().unwrap().median, row.summary.unwrap().median)
    }

    #[test]
    fn each_pattern_counts_its_bytes_and_legs() {
        static BI: Benchmark = Benchmark::of::<PatternKernel<BiStream, Slow>>("sim.bibw", "x").streaming();
        static SEMI: Benchmark = Benchmark::of::<PatternKernel<Semidirectional, Slow>>("sim.semi", "x");
        static DUO: Benchmark = Benchmark::of::<PatternKernel<Bidirectional, Slow>>("sim.duo", "x");
        static UNI: Benchmark =
            Benchmark::of::<PatternKernel<Unidirectional, Slow>>("sim.uni", "x").streaming();
        let close = |(rate, ns): (f64, f64), bytes: f64, leg_ns: f64| {
            assert!((ns - leg_ns).abs() < 1e-9, "{ns} is not {leg_ns}");
            assert!((rate * ns / 1e3 - bytes).abs() < 1e-9, "{rate} MB/s in {ns} ns are not {bytes} bytes");
        };
        // A message of 1000 bytes occupies its sender for 2000 ns and arrives 5000 ns later.
        close(figures(&BI, 8), 2.0 * 8.0 * 1000.0, 8.0 * 2000.0 + 5000.0);
        close(figures(&SEMI, 8), 1000.0, 7000.0);
        close(figures(&DUO, 8), 2.0 * 1000.0, 7000.0);
        close(figures(&UNI, 8), 1000.0, (8.0 * 2000.0 + 5000.0 + 5000.0) / 8.0);
    }

    #[test]
    fn a_row_names_the_depth_only_under_the_pattern_that_has_one() {
        static LINK: Benchmark = Benchmark::of::<PatternKernel<Unidirectional, Slow>>("sim.link", "x")
            .streaming_only(LinkPattern::PARAMETER, LinkPattern::Unidirectional.name())
            .with(&[LinkPattern::PARAMETER]);
        let mut plan = plan("1000");
        plan.chosen.set(LinkPattern::PARAMETER.name, LinkPattern::PARAMETER.names().iter().copied());
        let rows = measure(2, &LINK, &plan).unwrap().rows;
        let found: Vec<_> = rows.iter().map(|r| (r.key.as_str(), r.depth, r.work.unwrap().ops)).collect();
        assert_eq!(
            found,
            [
                ("sim.link/pattern=semidirectional,bytes=1000", None, 1),
                ("sim.link/pattern=bidirectional,bytes=1000", None, 1),
                ("sim.link/pattern=unidirectional,bytes=1000,depth=8", Some(8), 8),
            ]
        );
    }

    #[test]
    fn rows_with_a_single_buffer_have_a_separate_key_and_are_verified() {
        static SINGLE: Benchmark = Benchmark::of::<PatternKernel<Stream, Slow>>("sim.bw", "x")
            .streaming()
            .with(&[Buffers::PARAMETER]);
        let mut plan = Plan { verify: Verify::Full, ..plan("1000") };
        plan.chosen.set("buffers", ["multiple", "single"]);
        let rows = measure(2, &SINGLE, &plan).unwrap().rows;
        let keys: Vec<&str> = rows.iter().map(|r| r.key.as_str()).collect();
        assert_eq!(keys, ["sim.bw/bytes=1000,depth=8", "sim.bw/buffers=single,bytes=1000,depth=8"]);
        assert!(rows.iter().all(|r| r.check == Check::Passed));
        // One of 8 messages is seen where they share a buffer.
        assert_eq!(rows.iter().map(|r| r.checked).collect::<Vec<_>>(), [60, 60 / 8]);
    }

    #[test]
    fn messages_that_overwrite_each_other_are_checked_in_part() {
        static DUO: Benchmark = Benchmark::of::<PatternKernel<Bidirectional, Slow>>("sim.duo", "x");
        static UNI: Benchmark =
            Benchmark::of::<PatternKernel<Unidirectional, Slow>>("sim.uni", "x").streaming();
        let checked = |bench: &'static Benchmark| {
            let row = measure(2, bench, &Plan { verify: Verify::Full, ..plan("64") }).unwrap().rows.remove(0);
            assert_eq!(row.check, Check::Passed);
            row.checked
        };
        assert_eq!([&PING, &STREAM, &DUO, &UNI].map(checked), [60, 60, 30, 60 / 8]);
    }

    #[test]
    fn pairs_add_their_bytes_in_the_time_of_the_slowest() {
        let row = measure(5, &PAIRS, &plan("1000")).unwrap().rows.remove(0);
        assert_eq!((row.pairs, row.ranks, row.samples.len()), (2, 4, 2));
        assert!(row.trust.iter().any(|n| n.short == "1 idle"), "{:?}", row.trust);
        assert!((row.mb_per_s().unwrap().median - 2.0 * 8.0 * 1000.0 / 26_000.0 * 1e3).abs() < 1e-9);
    }

    #[test]
    fn one_flipped_bit_fails_the_row_and_is_located() {
        for bench in [&BAD_PING, &BAD_STREAM] {
            let memory = measure(2, bench, &plan("2,64")).unwrap();
            assert_eq!(memory.rows[0].outcome, Outcome::Ok, "a message of 2 bytes has no third byte");
            let Check::Failed(m) = &memory.rows[1].check else { panic!("{:?}", memory.rows[1]) };
            assert_eq!((m.slot, m.byte, m.expected ^ m.actual), (0, 2, 1));
            assert_eq!(memory.tally.unwrap().exit_code(true), 5);
        }
    }

    #[test]
    fn a_row_without_verification_has_a_notice() {
        let row = measure(2, &BAD_PING, &Plan { verify: Verify::Off, ..plan("64") }).unwrap().rows.remove(0);
        assert_eq!((row.check, row.outcome), (Check::Off, Outcome::Ok));
        assert!(row.trust.iter().any(|n| n.code == "unverified"));
    }
}
