//! Datagrams at an offered rate: what arrives of them, in which order, and how evenly.
//!
//! The active rank sends at scheduled times. The other rank notes when each datagram arrives, and reports the round. A datagram that
//! is lost, late or doubled is no error; one with wrong data is.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{
    benchmark::{
        Case, Context, Figure, Figures, Method, Metric, Role,
        payload::{Check, Fill, MessageId, Slots},
    },
    error::{Error, Result},
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, Steps},
        session::Session,
        timed_loop::{arrivals, paced_sends},
    },
    stats::{Summary, proportion_interval},
    system::clock::Clock,
    two_sided::request::{Schedule, at_each_rate},
    unit::Rank,
};

/// Formula of the headline.
pub const FORMULA: &str = "S over the mean time between datagrams that arrive, median of 20 parts of a round";

/// Datagrams of a sample. Percentiles of single datagrams would be those of means.
const DATAGRAMS_OF_SAMPLE: u64 = 10;

/// Buffers of messages on each rank, which datagrams use in turn.
const BUFFERS: u32 = 64;

/// Returns the description of what is timed.
pub const fn method(like: &'static str) -> Method {
    Method {
        timed: "rank 0 sends datagrams at scheduled times and writes into each when it was sent; rank 1 \
                receives them and reads the clock after each call; the figures count from the first \
                datagram that arrives to the last; datagrams that are due together are sent by one call, \
                and those that arrive together received by one, unless --offload is off",
        untimed: "the schedule, buffers, filling and checking them, the report of rank 1, which follows over TCP",
        like,
    }
}

/// Runs paced datagrams over a link, at every rate of the plan.
pub fn run_datagrams<L: DatagramLink>(session: &mut Session<'_>) -> Result<()> {
    let (batch, clock) = (session.plan.batch, session.clock);
    at_each_rate(session, Metric::Bandwidth, &|cx, case, schedule| {
        if batch.is_some() {
            return Err(Error::unsupported("a sample is a part of a round of datagrams; leave out --batch"));
        }
        Ok(Box::new(Paced::<L>::open(cx, case, schedule, clock.clone())?))
    })
}

/// Datagrams over a link at scheduled times.
struct Paced<L> {
    link: L,
    clock: Clock,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
    schedule: Schedule,
    /// What arrived in the last round, on the active rank.
    last: Received,
    /// What arrived in the longest round since the warm-up.
    longest: Received,
}

impl<L: DatagramLink> Paced<L> {
    fn open(cx: &Context<'_>, case: &Case, schedule: Schedule, clock: Clock) -> Result<Paced<L>> {
        if case.bytes.0 > L::MAX_BYTES {
            return Err(Error::unsupported(format!("a datagram carries at most {} bytes", L::MAX_BYTES)));
        }
        let slots = Slots { stride: L::HEADER + case.bytes.0, ..Slots::new(case.bytes.0, BUFFERS) };
        cx.afford(2 * slots.total())?;
        let link = L::open(cx, slots)?;
        let (role, rank, peer) = (cx.role, cx.rank(), cx.peer);
        let [last, longest] = [Received::default(), Received::default()];
        Ok(Paced { link, clock, slots, role, rank, peer, schedule, last, longest })
    }
}

impl<L: DatagramLink> Steps for Paced<L> {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        match self.role {
            Role::Active => fill.write(self.rank, self.slots, self.link.outgoing()),
            Role::Passive => {
                self.link.forget();
                fill.poison(self.peer, self.slots, self.link.incoming());
            }
        }
        Ok(())
    }

    fn figures(&mut self) -> Result<Figures> {
        let offered = ("offered_per_s".to_owned(), Figure::Value(self.schedule.rate as f64));
        Ok(self.longest.figures().into_iter().chain([offered]).chain(self.link.figures()).collect())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let Paced { link, slots, role, rank, peer, .. } = self;
        if *role == Role::Active {
            return Ok(Check::Passed);
        }
        let numbers = link.arrived().to_vec();
        let incoming = link.incoming();
        let checks = (0..).zip(numbers).filter_map(|(slot, number)| {
            let (number, start) = (number? % u64::from(slots.count), slots.offset(slot));
            let message = &incoming[start..start + slots.bytes as usize];
            Some(fill.words(*peer, number).check(message, MessageId { rank: *rank, slot: number }))
        });
        Ok(checks.fold(Check::Passed, Check::and))
    }
}

impl<L: DatagramLink> OpenKernel for Paced<L> {
    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn batch(&self) -> Option<u64> {
        Some(DATAGRAMS_OF_SAMPLE)
    }

    fn interval_ns(&self) -> Option<f64> {
        Some(self.schedule.interval_ns() * DATAGRAMS_OF_SAMPLE as f64)
    }

    fn readings(&self, samples: u64) -> u64 {
        samples * DATAGRAMS_OF_SAMPLE + 1
    }

    fn warmed_up(&mut self, _: &Clock) -> Result<()> {
        self.longest = Received::default();
        Ok(())
    }

    fn timed(&mut self, clock: &Clock, _: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        for stamps in stamps {
            let datagrams = stamps.len().saturating_sub(1);
            let due = self.schedule.ticks(datagrams, clock);
            self.link.begin()?;
            self.link.wait_until_ready()?;
            paced_sends(&mut self.link, clock, &due, stamps)?;
            let received = self.link.finish()?;
            let first_to_last = stamps.get(1).zip(stamps.last());
            let sent_ns = first_to_last.map_or(0, |(first, last)| clock.nanos(*first, *last));
            self.last = Received { sent_ns, ..received };
        }
        Ok(())
    }

    fn answered(&mut self, batch: u64, samples: u64) -> Result<()> {
        let datagrams = batch * samples;
        // Every datagram may arrive twice.
        let mut found = vec![Arrival::default(); 2 * datagrams as usize + 64];
        self.link.begin()?;
        self.link.ready()?;
        let count = arrivals(&mut self.link, &self.clock, datagrams, &mut found)?;
        found.truncate(count);
        let first = found.first().map_or(0, |arrival| arrival.at_ns);
        found.iter_mut().for_each(|arrival| arrival.at_ns = self.clock.nanos(first, arrival.at_ns));
        self.link.report(&Received::new(datagrams, &found))
    }

    fn samples(&mut self, _: &Clock, _: &[u64]) -> RoundSamples {
        let of_sample = |ns: &f64| (ns * DATAGRAMS_OF_SAMPLE as f64).round() as u64;
        let samples = self.last.parts_ns.iter().map(of_sample).collect();
        if self.last.sent >= self.longest.sent {
            self.longest = std::mem::take(&mut self.last);
        }
        RoundSamples::chained(samples)
    }
}

/// A datagram that arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the datagram in its round, from 0.
    pub number: u64,
    /// When it was sent, in nanoseconds after the start of the round on the sender's clock.
    pub sent_ns: u64,
    /// When it arrived on the receiver's clock: raw ticks in the timed loop, later nanoseconds.
    pub at_ns: u64,
}

/// One endpoint of a link on which datagrams may be lost, late or doubled.
///
/// Datagram `number` of a round has the message slot `number` modulo the number of slots.
pub trait DatagramLink: Sized + 'static {
    /// Maximum size of a message in bytes.
    const MAX_BYTES: u64 = u64::MAX;
    /// Bytes of the header before each message in its slot, at least 1. The link writes and reads it.
    const HEADER: u64;

    /// Returns the maximum number of datagrams that a call sends.
    fn most_sent(&self) -> usize;
    /// Sends datagrams with their numbers and the time of sending.
    fn send(&mut self, numbers: Range<u64>, sent_ns: u64) -> Result<()>;
    /// Waits for datagrams of the round. Writes those that one call receives to `found`, without the time of arrival, and returns their number;
    /// 0 after a while without one.
    fn receive(&mut self, found: &mut [Arrival]) -> Result<usize>;
    /// Returns whether no further datagram of the round can be expected. Called after [`DatagramLink::receive`] returned 0.
    fn is_over(&mut self) -> Result<bool>;

    /// Opens the endpoint of this rank. Collective, untimed.
    fn open(cx: &Context<'_>, slots: Slots) -> Result<Self>;
    /// Begins a round on either rank. Datagrams of earlier rounds are ignored from now on. Untimed.
    fn begin(&mut self) -> Result<()>;
    /// Tells the sender that this rank receives. Untimed.
    fn ready(&mut self) -> Result<()>;
    /// Waits on the sender until the other rank receives. Untimed.
    fn wait_until_ready(&mut self) -> Result<()>;
    /// Tells the receiver that all datagrams are sent; returns its report. Untimed.
    fn finish(&mut self) -> Result<Received>;
    /// Sends the report of the receiver. Untimed.
    fn report(&mut self, received: &Received) -> Result<()>;

    /// Returns figures of the link, on the sender. Untimed.
    fn figures(&self) -> Figures {
        Figures::new()
    }
    /// Returns the numbers of the datagrams whose messages are in the slots of the incoming buffer.
    fn arrived(&self) -> &[Option<u64>];
    /// Makes [`DatagramLink::arrived`] return no number until datagrams arrive.
    fn forget(&mut self);
    /// Returns the buffer that datagrams are sent from, from the first message on.
    fn outgoing(&mut self) -> &mut [u8];
    /// Returns the buffer that datagrams are received in, from the first message on.
    fn incoming(&mut self) -> &mut [u8];
}

/// Parts of a round, whose rates and jitters give intervals.
const PARTS: usize = 20;

/// A share of datagrams: the start of the names of its figures, and the figures that count the part and the whole.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Start of the names: `lost` for `lost_percent`, `lost_low_percent` and `lost_high_percent`.
    pub name: &'static str,
    /// Figure that counts the part.
    pub part: &'static str,
    /// Figure that counts the whole.
    pub all: &'static str,
}

/// The shares that a round has.
pub const SHARES: [Share; 3] = [
    Share { name: "lost", part: "lost_datagrams", all: "sent_datagrams" },
    Share { name: "reordered", part: "reordered_datagrams", all: "arrived_datagrams" },
    Share { name: "duplicate", part: "duplicate_datagrams", all: "arrived_datagrams" },
];

impl Share {
    /// Returns the share with its interval in percent, as figures; the reason if the whole is 0.
    pub fn figures(&self, part: u64, all: u64) -> Figures {
        let name = self.name;
        let Some([low, high]) = proportion_interval(part, all) else {
            let why = Figure::Unresolved("no datagram arrived".into());
            return Figures::from([(format!("{name}_percent"), why)]);
        };
        let percent = |share: f64| Figure::Value(100.0 * share);
        Figures::from([
            (format!("{name}_percent"), percent(part as f64 / all as f64)),
            (format!("{name}_low_percent"), percent(low)),
            (format!("{name}_high_percent"), percent(high)),
        ])
    }
}

/// What arrived of a round: the report of the receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Time from sending the first to sending the last, in nanoseconds; known on the sender.
    pub sent_ns: u64,
    /// Datagrams that arrived, each counted once.
    pub arrived: u64,
    /// Datagrams that arrived after one with a higher number (RFC 4737, 3.3), each counted once.
    pub reordered: u64,
    /// Arrivals of datagrams that had arrived before.
    pub duplicates: u64,
    /// Mean time between arrivals in each part of the round, in nanoseconds.
    pub parts_ns: Vec<f64>,
    /// Jitter (RFC 3550, 6.4.1) at the end of each part, in nanoseconds; empty of short rounds.
    pub jitters_ns: Vec<f64>,
}

impl Received {
    /// Returns what arrived of `sent` datagrams, from the arrivals in their order.
    pub fn new(sent: u64, arrivals: &[Arrival]) -> Received {
        let (mut seen, mut first) = (vec![false; sent as usize], Vec::with_capacity(arrivals.len()));
        let mut found = Received { sent, ..Received::default() };
        let mut next = 0;
        for arrival in arrivals {
            let Some(seen) = seen.get_mut(arrival.number as usize) else { continue };
            if std::mem::replace(seen, true) {
                found.duplicates += 1;
                continue;
            }
            found.reordered += u64::from(arrival.number < next);
            next = next.max(arrival.number + 1);
            first.push(*arrival);
        }
        found.arrived = first.len() as u64;
        // A part ends with the last datagram of a call: those of a call have arrived at the same time.
        let is_last = |at: &usize| first.get(at + 1).is_none_or(|next| next.at_ns != first[*at].at_ns);
        let ends: Vec<usize> = (0..first.len()).filter(is_last).collect();
        let parts = PARTS.min(ends.len().saturating_sub(1));
        let end = |part: usize| ends[part * (ends.len() - 1) / parts];
        let time = |part: usize| {
            let (from, to) = (end(part), end(part + 1));
            first[to].at_ns.saturating_sub(first[from].at_ns) as f64 / (to - from) as f64
        };
        found.parts_ns = (0..parts).map(time).collect();
        let jitters = jitters(&first);
        if jitters.len() >= 2 * PARTS {
            found.jitters_ns = (1..=PARTS).map(|part| jitters[part * jitters.len() / PARTS - 1]).collect();
        }
        found
    }

    /// Returns the figures.
    pub fn figures(&self) -> Figures {
        let value = |name: &str, value: f64| (name.to_owned(), Figure::Value(value));
        let lost = self.sent.saturating_sub(self.arrived);
        let counts = [
            ("sent_datagrams", self.sent),
            ("arrived_datagrams", self.arrived),
            ("lost_datagrams", lost),
            ("reordered_datagrams", self.reordered),
            ("duplicate_datagrams", self.duplicates),
        ];
        let count = |name: &str| counts.iter().find(|count| count.0 == name).map_or(0, |count| count.1);
        let mut figures: Figures = counts.iter().map(|(name, count)| value(name, *count as f64)).collect();
        figures.extend(SHARES.iter().flat_map(|share| share.figures(count(share.part), count(share.all))));
        if self.sent > 1 && self.sent_ns > 0 {
            figures.extend([value("sent_per_s", (self.sent - 1) as f64 * 1e9 / self.sent_ns as f64)]);
        }
        let jitter = Summary::of_batches(&self.jitters_ns);
        figures.insert(
            "jitter_us".into(),
            match &jitter {
                Some(jitter) => Figure::Value(jitter.median / 1e3),
                None => {
                    Figure::Unresolved(format!("the jitter needs {} datagrams that arrive", 2 * PARTS + 1))
                }
            },
        );
        if let Some([low, high]) = jitter.and_then(|jitter| jitter.ci95) {
            figures.extend([value("jitter_low_us", low / 1e3), value("jitter_high_us", high / 1e3)]);
        }
        figures
    }
}

/// Returns the jitter after each arrival but the first: J += (|D| - J) / 16, where D is by how much two arrivals are further apart than
/// their sending (RFC 3550, 6.4.1).
fn jitters(arrivals: &[Arrival]) -> Vec<f64> {
    let apart = |from: u64, to: u64| to as f64 - from as f64;
    let mut jitter = 0.0;
    let mut all = Vec::new();
    for pair in arrivals.windows(2) {
        let difference = apart(pair[0].at_ns, pair[1].at_ns) - apart(pair[0].sent_ns, pair[1].sent_ns);
        jitter += (difference.abs() - jitter) / 16.0;
        all.push(jitter);
    }
    all
}

#[cfg(test)]
mod received_tests {
    use super::*;

    /// Returns arrivals of these numbers, sent 1000 ns apart, that take 500 ns.
    fn arrivals(numbers: impl IntoIterator<Item = u64>) -> Vec<Arrival> {
        let mut last = 0;
        let arrival = |number: u64| {
            last = (1000 * number + 500).max(last + 1);
            Arrival { number, sent_ns: 1000 * number, at_ns: last }
        };
        numbers.into_iter().map(arrival).collect()
    }

    fn value(figures: &Figures, name: &str) -> f64 {
        match &figures[name] {
            Figure::Value(value) => *value,
            Figure::Unresolved(why) => panic!("{name}: {why}"),
        }
    }

    #[test]
    fn all_arrive_evenly() {
        let found = Received::new(1000, &arrivals(0..1000));
        assert_eq!((found.arrived, found.reordered, found.duplicates), (1000, 0, 0));
        assert_eq!((found.parts_ns.len(), found.jitters_ns.len()), (20, 20));
        assert!(found.parts_ns.iter().all(|time| *time == 1000.0), "{:?}", found.parts_ns);
        let figures = found.figures();
        assert_eq!([value(&figures, "lost_percent"), value(&figures, "jitter_us")], [0.0, 0.0]);
        // The rule of three: with none of 1000 lost, up to about 0.38 % may be.
        assert!((value(&figures, "lost_high_percent") - 0.3827).abs() < 1e-3);
    }

    /// RFC 4737, 3.3: of 1 2 3 7 4 5 6 8, the packets 4, 5 and 6 are reordered.
    #[test]
    fn losses_duplicates_and_order_are_counted() {
        let found = Received::new(12, &arrivals([1, 2, 3, 7, 4, 5, 6, 8, 8, 4, 11]));
        assert_eq!((found.arrived, found.reordered, found.duplicates), (9, 3, 2));
        let figures = found.figures();
        assert_eq!((value(&figures, "lost_datagrams"), value(&figures, "lost_percent")), (3.0, 25.0));
        assert!((value(&figures, "reordered_percent") - 100.0 / 3.0).abs() < 1e-9);
        assert!(value(&figures, "lost_low_percent") < 25.0 && value(&figures, "lost_high_percent") > 25.0);
        assert!(matches!(&figures["jitter_us"], Figure::Unresolved(why) if why.contains("41 datagrams")));
    }

    /// Fifty trains of 30 datagrams, each a microsecond after the one before it, of which the first has no rate.
    #[test]
    fn trains_do_not_change_the_rate() {
        let mut all = arrivals(0..1500);
        all.iter_mut().for_each(|arrival| arrival.at_ns = 1000 * (arrival.number / 30) + 7);
        let found = Received::new(1500, &all);
        assert_eq!(found.parts_ns.len(), 20);
        assert!(found.parts_ns.iter().all(|time| (time - 1000.0 / 30.0).abs() < 1e-9), "{found:?}");
        assert!(Received::new(30, &all[..30]).parts_ns.is_empty(), "one train has no rate");
    }

    #[test]
    fn a_third_that_is_lost_lowers_the_rate_by_a_third() {
        let found = Received::new(3000, &arrivals((0..3000).filter(|number| number % 3 > 0)));
        let median = Summary::of_batches(&found.parts_ns).unwrap().median;
        assert!((median - 1500.0).abs() < 1.0, "{median}");
        assert_eq!(found.arrived, 2000);
    }

    /// Every second datagram is late by 320 ns: |D| is always 320.
    #[test]
    fn the_jitter_tends_to_the_mean_difference() {
        let mut all = arrivals(0..2000);
        all.iter_mut().step_by(2).for_each(|arrival| arrival.at_ns += 320);
        let jitter = value(&Received::new(2000, &all).figures(), "jitter_us");
        assert!((jitter - 0.32).abs() < 1e-6, "{jitter}");
        // The first step of the filter.
        assert_eq!(jitters(&all)[0], 20.0);
    }

    #[test]
    fn nothing_that_arrives_has_no_times() {
        let none = Received::new(100, &[]);
        let figures = none.figures();
        assert_eq!(value(&figures, "lost_percent"), 100.0);
        assert!(matches!(&figures["reordered_percent"], Figure::Unresolved(_)) && none.parts_ns.is_empty());
        assert_eq!(Received::new(100, &arrivals([7])).parts_ns, Vec::<f64>::new());
    }
}
