//! Datagrams at an offered rate: what arrives of them, in which order, and how evenly.
//!
//! The active rank sends at scheduled times. The other rank notes when each datagram arrives, and reports the round. A datagram that
//! is lost, late or doubled is no error; one with wrong data is.

use ombx_record::{
    error::{Error, Result},
    result::{Check, Figure, Figures, Metric},
    unit::Rank,
};

use crate::{
    benchmark::{
        Case, Context, Method, Role,
        payload::{Fill, MessageId, Slots},
    },
    clock::Clock,
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, Steps},
        session::Session,
        timed_loop::{arrivals, paced_sends},
    },
    two_sided::{
        received::{Arrival, Received},
        request::{Schedule, at_each_rate},
        scheduled_link::DatagramLink,
    },
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
