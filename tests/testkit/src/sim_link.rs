//! A link of known latency and time per byte, in virtual time.

use std::collections::VecDeque;

use ombx_core::{
    benchmark::{
        Benchmark, Case, Choice, Context, Figure, Figures, Kernel, Layout, Method, Metric, Named, Pairs,
        Parameter, Role, Work, payload::Slots,
    },
    clock::Clock,
    error::{Error, Result},
    measure::{
        plan::{Effort, Plan},
        runner::{self, Part},
        session::Memory,
    },
    pacing::mesh::Mesh,
    result::Samples,
    two_sided::{
        pattern::Link,
        scheduled_link::{REPLY_BYTES, RequestLink},
    },
    unit::{Bytes, Rank},
};

use super::{
    noise::{Noise, NoiseStream},
    thread_team::{SimMessage, ThreadTeam, on_uneven_ranks},
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

/// Mesh whose messages occupy the sender for 1 ns and `PER_BYTE` ns per byte, and arrive `LATENCY` ns later, plus the delay of their
/// link.
///
/// The barrier takes no time after the last rank has entered it.
pub struct SimMesh<const LATENCY: u64, const PER_BYTE: u64 = 0> {
    team: ThreadTeam,
}

impl<const LATENCY: u64, const PER_BYTE: u64> Mesh for SimMesh<LATENCY, PER_BYTE> {
    fn open(cx: &Context<'_>) -> Result<Self> {
        Ok(SimMesh { team: cx.fabric::<ThreadTeam>()?.clone() })
    }

    fn barrier(&mut self) -> Result<()> {
        self.team.virtual_barrier()
    }

    fn pass(&mut self, to: Rank, from: Rank) -> Result<()> {
        self.send(to, &[])?;
        self.receive(from, &mut [])
    }

    fn send(&mut self, to: Rank, bytes: &[u8]) -> Result<()> {
        self.team.time.advance(1 + bytes.len() as u64 * PER_BYTE);
        let arrives_at = self.team.time.now() + LATENCY + self.team.delay_to(to);
        self.team.send_message(to, SimMessage { bytes: bytes.to_vec(), arrives_at });
        Ok(())
    }

    fn receive(&mut self, from: Rank, bytes: &mut [u8]) -> Result<()> {
        let message = self.team.receive_message(from)?;
        self.team.time.advance(message.arrives_at.saturating_sub(self.team.time.now()));
        bytes.copy_from_slice(&message.bytes);
        Ok(())
    }

    fn linger(&mut self, ticks: u64) {
        self.team.time.advance(ticks);
    }

    fn clock_name(&self, _: &Clock) -> String {
        self.team.rank.to_string()
    }
}

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

/// Undisturbed time of a simulated iteration in nanoseconds: a window of small messages.
const ITERATION_NS: f64 = 10_000.0;
/// Iterations of each pair.
const ITERATIONS: u64 = 40_000;
/// Iterations of the warm-up.
const WARM_UP: u64 = 40;
/// Time in nanoseconds by which a rank leaves a barrier later than the rank before it.
const LEAVES_NS: u64 = 200;

/// Noise of the iterations of each pair, independent between pairs.
pub const MODELS: [(&str, Noise); 5] = [
    ("normal 2 %", Noise::Independent { sigma: 0.02 }),
    ("normal 10 %", Noise::Independent { sigma: 0.1 }),
    ("normal 30 %", Noise::Independent { sigma: 0.3 }),
    ("tail 30 %", Noise::Tailed { mean: 0.3, phi: 0.0 }),
    ("30 %, r = 0.6", Noise::Correlated { phi: 0.6, sigma: 0.3 }),
];

static NOISE: Parameter = Parameter::listed(
    "noise",
    "model of noise",
    (&[MODELS[0].0, MODELS[1].0, MODELS[2].0, MODELS[3].0, MODELS[4].0], &[]),
    (MODELS[0].0, Named::Always),
);

static SIMULATED: Benchmark =
    Benchmark::new::<NoisyPair>("simulated.pairs", "pairs whose iterations a model of noise gives")
        .layout(Layout::Pairs(Pairs::Most))
        .with(&[&NOISE]);

/// Rates of a row, each relative to the total work over the wall time that passed on a clock outside the engine.
#[derive(Debug, Clone, Copy)]
pub struct PairsRow {
    /// Iterations per sample.
    pub batch: u64,
    /// Number of samples.
    pub samples: usize,
    /// The headline.
    pub headline: f64,
    /// The headline with the slowest pair's own time in place of the time from the first start to the last end.
    pub slowest_own: f64,
    /// Mean of the pairs' own times, as osu_mbw_mr computes it.
    pub osu: f64,
}

/// Measures pairs of a model. Equal seeds give equal rows.
pub fn measure_pairs(pairs: u32, model: &'static str, seed: u64) -> Result<PairsRow> {
    let mut plan = Plan {
        sizes: Some(vec![Bytes(seed)]),
        effort: Effort::Fixed { iterations: ITERATIONS, warmup: WARM_UP },
        ..Plan::default()
    };
    plan.chosen.set(NOISE.name, [model]);
    let leaves = |from, to| if from == to { LEAVES_NS * u64::from(from) } else { 0 };
    let mut all = on_uneven_ranks(2 * pairs, leaves, |team| {
        let mut sink = Memory::default();
        let part = Part { choices: vec![Choice { bench: &SIMULATED, preset: &[] }], plan: plan.clone() };
        runner::run_all(team, &[part], &team.clock, &mut sink, vec!["pairs".into()]).map(|_| sink)
    });
    let mut sink = all.swap_remove(0)?;
    let missing = || Error::usage(format!("{model} was not measured"));
    let row = sink.rows.pop().ok_or_else(missing)?;
    let (Some(summary), Some(Figure::Value(wall_ns))) = (&row.summary, row.figures.get("wall_ns")) else {
        return Err(missing());
    };
    let batch = row.samples.first().map_or(1, |samples| samples.batch);
    let slowest = |at: usize| row.samples.iter().map(|s: &Samples| s.elapsed_ns[at]).max().unwrap_or(0);
    let own = (0..summary.n).map(slowest).sum::<u64>() as f64 / (summary.n as f64 * batch as f64);
    let mean = row.across_ranks().ok_or_else(missing)?.mean;
    Ok(PairsRow {
        batch,
        samples: summary.n,
        headline: wall_ns / summary.median,
        slowest_own: wall_ns / own,
        osu: wall_ns / mean,
    })
}

/// Kernel of a pair whose iterations let a random time pass.
struct NoisyPair {
    team: ThreadTeam,
    stream: NoiseStream,
    began_ns: u64,
    iterations: u64,
}

impl Kernel for NoisyPair {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let chosen = case.text(&NOISE);
        let (_, noise) = MODELS.iter().find(|(name, _)| Some(*name) == chosen).unwrap_or(&MODELS[0]);
        let team = cx.fabric::<ThreadTeam>()?.clone();
        let seed = case.bytes.0 << 16 | u64::from(cx.rank().0) << 1 | u64::from(cx.role == Role::Active);
        Ok(NoisyPair { team, stream: noise.stream(seed), began_ns: 0, iterations: 0 })
    }

    fn begin(&mut self) -> Result<()> {
        self.team.virtual_barrier()?;
        (self.began_ns, self.iterations) = (self.team.time.now(), 0);
        Ok(())
    }

    fn active(&mut self) -> Result<()> {
        self.iterations += 1;
        let ns = self.stream.next_time() * ITERATION_NS;
        self.team.time.advance(ns.round() as u64);
        Ok(())
    }

    /// Returns the wall time of all pairs for one iteration of each.
    fn figures(&mut self) -> Result<Figures> {
        self.team.virtual_barrier()?;
        let wall_ns = (self.team.time.now() - self.began_ns) as f64;
        Ok([("wall_ns".into(), Figure::Value(wall_ns / self.iterations.max(1) as f64))].into())
    }
}

#[cfg(test)]
mod tests {
    use ombx_core::{
        benchmark::{Benchmark, Chosen, Depth, ParameterValue},
        measure::plan::{Effort, Plan, Verify},
        result::{Check, Outcome},
        two_sided::pattern::{
            BiStream, Bidirectional, Buffers, LinkPattern, PatternKernel, PingPong, Semidirectional, Stream,
            Unidirectional,
        },
        unit::parse_sizes,
    };

    use super::{super::measure, *};

    type Slow = SimLink<5000, 2>;
    type Broken = SimLink<5000, 2, 3>;

    static PING: Benchmark =
        Benchmark::new::<PatternKernel<PingPong, Slow>>("sim.latency", "ping-pong of known cost");
    static STREAM: Benchmark =
        Benchmark::new::<PatternKernel<Stream, Slow>>("sim.bw", "stream of known cost").streaming();
    static PAIRS: Benchmark = Benchmark::new::<PatternKernel<Stream, Slow>>("sim.pairs", "streams")
        .streaming()
        .layout(ombx_core::benchmark::Layout::Pairs(ombx_core::benchmark::Pairs::Most));
    static BAD_PING: Benchmark =
        Benchmark::new::<PatternKernel<PingPong, Broken>>("sim.bad_latency", "flips a bit");
    static BAD_STREAM: Benchmark =
        Benchmark::new::<PatternKernel<Stream, Broken>>("sim.bad_bw", "flips a bit").streaming();

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
        static BI: Benchmark = Benchmark::new::<PatternKernel<BiStream, Slow>>("sim.bibw", "x").streaming();
        static SEMI: Benchmark = Benchmark::new::<PatternKernel<Semidirectional, Slow>>("sim.semi", "x");
        static DUO: Benchmark = Benchmark::new::<PatternKernel<Bidirectional, Slow>>("sim.duo", "x");
        static UNI: Benchmark =
            Benchmark::new::<PatternKernel<Unidirectional, Slow>>("sim.uni", "x").streaming();
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
        static LINK: Benchmark = Benchmark::new::<PatternKernel<Unidirectional, Slow>>("sim.link", "x")
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
        static SINGLE: Benchmark = Benchmark::new::<PatternKernel<Stream, Slow>>("sim.bw", "x")
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
        static DUO: Benchmark = Benchmark::new::<PatternKernel<Bidirectional, Slow>>("sim.duo", "x");
        static UNI: Benchmark =
            Benchmark::new::<PatternKernel<Unidirectional, Slow>>("sim.uni", "x").streaming();
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
        assert!(row.trust.iter().any(|n| n.code.name() == "unverified"));
    }
}

#[cfg(test)]
mod sim_mesh_tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use ombx_core::{
        benchmark::{Aggregation, Benchmark, Choice, Figure, ParameterValue},
        measure::{
            plan::{Effort, Plan},
            runner::{self, Part},
            session::Memory,
        },
        pacing::start::Pacing,
    };

    use super::{
        super::{Delay, Probe, SlowerByRank, measure, on_uneven_ranks},
        *,
    };

    #[test]
    fn samples_do_not_contain_the_time_of_pacing() {
        static PACED: Benchmark =
            Benchmark::paced::<Probe<3000>, SimMesh<50_000>>("sim.paced", "3 us").sizes("8");
        let mut plan = Plan { effort: Effort::Fixed { iterations: 40, warmup: 2 }, ..Plan::default() };
        plan.chosen.set("pace", Pacing::PARAMETER.names().iter().copied());
        for ranks in [2, 3, 5] {
            let rows = measure(ranks, &PACED, &plan).unwrap().rows;
            assert_eq!(rows.len(), Pacing::ALL.len());
            for row in rows {
                assert_eq!((row.samples.len(), row.samples[0].batch), (ranks as usize, 1), "{}", row.key);
                assert_eq!(row.summary.unwrap().median, 3000.0, "{}", row.key);
            }
        }
    }

    #[test]
    fn the_slowest_rank_of_each_sample_is_the_headline() {
        static UNEVEN: Benchmark =
            Benchmark::paced::<SlowerByRank, SimMesh<100>>("sim.uneven", "uneven").sizes("8");
        let plan = Plan { effort: Effort::Fixed { iterations: 40, warmup: 2 }, ..Plan::default() };
        let row = measure(4, &UNEVEN, &plan).unwrap().rows.remove(0);
        // Rank r takes 1000 (r + 1) ns.
        assert_eq!((row.aggregation, row.summary.as_ref().unwrap().median), (Aggregation::Slowest, 4000.0));
        let ranks = row.across_ranks().unwrap();
        assert_eq!((ranks.mean, ranks.min, ranks.max), (2500.0, 1000.0, 4000.0));
    }

    /// Messages from rank 0 to rank 1 before the windows of the only row: first fit, refresh and first residual.
    const MESSAGES_BEFORE: u64 = 400 + 80 + 50;

    /// Delays messages to rank 1 after the first residual, which shifts what ping-pongs show by 200 ns.
    fn delayed_at_the_end(from: u32, to: u32) -> u64 {
        static SENT: AtomicU64 = AtomicU64::new(0);
        let late = (from, to) == (0, 1) && SENT.fetch_add(1, Ordering::Relaxed) >= MESSAGES_BEFORE;
        if late { 400 } else { 0 }
    }

    #[test]
    fn a_row_in_windows_says_how_far_clocks_are_apart() {
        static WINDOW: Benchmark =
            Benchmark::paced::<Probe<3000>, SimMesh<5000>>("sim.window", "3 us").sizes("8");
        let mut plan = Plan { effort: Effort::Fixed { iterations: 40, warmup: 2 }, ..Plan::default() };
        plan.chosen.set("pace", ["window"]);
        let marked = |delay: Delay| {
            let mut all = on_uneven_ranks(2, delay, |team| {
                let mut sink = Memory::default();
                let part = Part { choices: vec![Choice { bench: &WINDOW, preset: &[] }], plan: plan.clone() };
                runner::run_all(team, &[part], &team.clock, &mut sink, Vec::new()).unwrap();
                sink
            });
            let row = all.swap_remove(0).rows.remove(0);
            let Figure::Value(range) = row.figures["sync_residual_range_us"] else { panic!("{row:?}") };
            let mark = row.trust.into_iter().find(|mark| mark.code.name() == "clocks_apart");
            (range, mark.map(|mark| mark.short))
        };
        let (range, mark) = marked(|_, _| 0);
        assert!(range < 0.01 && mark.is_none(), "{range} us, {mark:?}");
        let (range, mark) = marked(delayed_at_the_end);
        assert!((range - 0.2).abs() < 0.01, "{range} us");
        assert_eq!(mark.as_deref(), Some("clocks apart 7%"), "0.2 of 3 us");
    }

    #[test]
    fn a_high_cost_of_the_clock_has_a_notice() {
        static SHORT: Benchmark =
            Benchmark::paced::<Probe<300>, SimMesh<100>>("sim.short", "300 ns").sizes("8");
        let notice = |batch| {
            let plan = Plan { batch, ..Plan::default() };
            let row = measure(2, &SHORT, &plan).unwrap().rows.remove(0);
            row.trust.into_iter().find(|notice| notice.code.name() == "clock_cost").map(|notice| notice.short)
        };
        assert_eq!(notice(None).as_deref(), Some("clock 3%"), "9 ns of 300");
        assert_eq!(notice(Some(10)), None);
    }
}

#[cfg(test)]
mod pairs_tests {
    use super::*;

    #[test]
    fn the_headline_of_noisy_pairs_is_their_total_work_over_wall_time() {
        for (pairs, (model, _)) in [2, 5, 16].into_iter().flat_map(|pairs| MODELS.map(|model| (pairs, model)))
        {
            let row = measure_pairs(pairs, model, 1).unwrap();
            assert!((row.headline - 1.0).abs() < 0.01, "{pairs} pairs, {model}: {row:?}");
            assert!((row.slowest_own / row.headline - 1.0).abs() < 0.01, "{pairs} pairs, {model}: {row:?}");
            assert!(row.osu >= row.headline, "{pairs} pairs, {model}: {row:?}");
            assert!(row.batch as f64 * ITERATION_NS > 0.6e6, "{row:?}");
        }
    }
}
