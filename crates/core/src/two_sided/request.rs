//! Open-loop requests: latency under an offered load.
//!
//! The active rank sends requests at scheduled times and does not wait for replies. The latency of a request counts from its
//! scheduled time, so that a pause of the other rank delays every request that was due meanwhile. A closed loop would send none
//! meanwhile and omit them (coordinated omission).

use std::fmt;

use ombx_record::{
    error::{Error, Result},
    result::{ACHIEVED, BACKLOG, Check, Figure, Figures, Metric, Mismatch, OFFERED, Work},
    stats::{Summary, median},
    unit::{Bytes, Rank, parse_numbers},
};

use crate::{
    benchmark::{
        Case, CaseValues, Context, Method, Named, Parameter, ParameterValue, Reader, Role, Value,
        payload::{Fill, Slots},
    },
    clock::Clock,
    measure::{
        collect::RoundSamples,
        open_kernel::{OpenKernel, Steps},
        row::{self, KernelFactory, KernelKind},
        session::Session,
        timed_loop::open_loop,
    },
    two_sided::scheduled_link::{REPLY_BYTES, RequestLink},
};

/// Formula of the headline.
pub const FORMULA: &str = "t: from the scheduled time of a request to its reply";

/// Returns the description of what is timed.
pub const fn method(like: &'static str) -> Method {
    Method {
        timed: "rank 0 sends requests at scheduled times without waiting for replies and polls for them; \
                rank 1 receives each request and replies with 8 bytes; the figure counts from the \
                scheduled time to the arrival of the reply, also if a request is sent late because as many \
                as --window are in flight",
        untimed: "connections, the schedule, buffers, filling and checking them",
        like,
    }
}

/// Runs open-loop requests over a link, at every rate of the plan.
pub fn run_requests<L: RequestLink>(session: &mut Session<'_>) -> Result<()> {
    let batch = session.plan.batch;
    at_each_rate(session, Metric::Latency, &|cx, case, schedule| open::<L>(cx, case, schedule, batch))
}

fn open<'k, L: RequestLink + 'k>(
    cx: &Context<'_>,
    case: &Case,
    schedule: Schedule,
    batch: Option<u64>,
) -> Result<Box<dyn OpenKernel + 'k>> {
    if batch.is_some_and(|batch| batch > 1) {
        return Err(Error::unsupported("each request is one sample; leave out --batch"));
    }
    Ok(Box::new(OpenLoop::<L>::open(cx, case, schedule)?))
}

/// Requests over a link at scheduled times.
struct OpenLoop<L> {
    link: L,
    slots: Slots,
    role: Role,
    rank: Rank,
    peer: Rank,
    schedule: Schedule,
    /// Scheduled times of the last round in ticks after its start.
    due: Vec<u64>,
    /// Slots that requests have used since the buffers were filled.
    used: u32,
    /// First wrong reply since the buffers were filled.
    wrong: Option<Mismatch>,
    /// Load of the longest round since the warm-up.
    load: Load,
}

impl<L: RequestLink> OpenLoop<L> {
    fn open(cx: &Context<'_>, case: &Case, schedule: Schedule) -> Result<OpenLoop<L>> {
        if case.bytes.0 > L::MAX_BYTES {
            return Err(Error::unsupported(format!("requests have at most {} bytes", L::MAX_BYTES)));
        }
        let slots = Slots::new(case.bytes.0, case.depth());
        cx.afford(2 * slots.total())?;
        let link = L::open(cx, slots)?;
        let (role, rank, peer) = (cx.role, cx.rank(), cx.peer);
        let load = Load::offered(schedule.rate);
        Ok(OpenLoop { link, slots, role, rank, peer, schedule, due: Vec::new(), used: 0, wrong: None, load })
    }

    fn use_slots(&mut self, requests: u64) {
        self.used = self.used.max(requests.min(self.slots.count.into()) as u32);
    }
}

/// Returns the first reply that is not the number of its request.
fn wrong_reply(echoes: &[u8], rank: Rank) -> Option<Mismatch> {
    let found = echoes.as_chunks::<REPLY_BYTES>().0;
    let (number, reply) = (0u64..).zip(found).find(|(number, reply)| number.to_le_bytes() != **reply)?;
    let expected = number.to_le_bytes();
    let byte = expected.iter().zip(reply).position(|(a, b)| a != b)?;
    Some(Mismatch { rank, slot: number, byte: byte as u64, expected: expected[byte], actual: reply[byte] })
}

impl<L: RequestLink> Steps for OpenLoop<L> {
    fn fill(&mut self, fill: Fill) -> Result<()> {
        (self.used, self.wrong) = (0, None);
        match self.role {
            Role::Active => fill.write(self.rank, self.slots, self.link.outgoing()),
            Role::Passive => fill.poison(self.peer, self.slots, self.link.incoming()),
        }
        Ok(())
    }

    fn figures(&mut self) -> Result<Figures> {
        Ok(self.load.figures())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let OpenLoop { link, role, rank, peer, .. } = self;
        let arrived = Slots { count: self.used, ..self.slots };
        Ok(match (role, &self.wrong) {
            (Role::Active, Some(mismatch)) => Check::Failed(mismatch.clone()),
            (Role::Active, None) => Check::Passed,
            (Role::Passive, _) => fill.check(*peer, arrived, link.incoming(), *rank),
        })
    }
}

impl<L: RequestLink> OpenKernel for OpenLoop<L> {
    fn steps(&mut self) -> &mut dyn Steps {
        self
    }

    fn batch(&self) -> Option<u64> {
        Some(1)
    }

    fn interval_ns(&self) -> Option<f64> {
        Some(self.schedule.interval_ns())
    }

    fn warmed_up(&mut self, _: &Clock) -> Result<()> {
        self.load = Load::offered(self.schedule.rate);
        Ok(())
    }

    fn timed(&mut self, clock: &Clock, _: u64, stamps: &mut [Vec<u64>]) -> Result<()> {
        for stamps in stamps {
            let requests = stamps.len().saturating_sub(1);
            self.due = self.schedule.ticks(requests, clock);
            self.use_slots(requests as u64);
            self.link.prepare(requests as u64)?;
            open_loop(&mut self.link, clock, self.slots.count.into(), &self.due, stamps)?;
        }
        Ok(())
    }

    fn answered(&mut self, _: u64, samples: u64) -> Result<()> {
        self.use_slots(samples);
        (0..samples).try_for_each(|number| self.link.answer(number))
    }

    fn samples(&mut self, clock: &Clock, stamps: &[u64]) -> RoundSamples {
        let Some((start, completed)) = stamps.split_first() else { return RoundSamples::default() };
        let of = |(due, completed): (&u64, &u64)| clock.nanos(start + due, *completed);
        let latencies: Vec<u64> = self.due.iter().zip(completed).map(of).collect();
        self.load.take(
            self.due.iter().map(|due| clock.nanos(0, *due)),
            completed.iter().map(|at| clock.nanos(*start, *at)),
            &latencies,
        );
        self.wrong = self.wrong.take().or_else(|| wrong_reply(self.link.echoes(), self.rank));
        RoundSamples::chained(latencies)
    }
}

/// Opens the kernel of a case with a schedule.
pub(in crate::two_sided) type OpenScheduled<'k> =
    &'k dyn Fn(&Context<'_>, &Case, Schedule) -> Result<Box<dyn OpenKernel + 'k>>;

/// Measures every case at every rate of the plan.
pub(in crate::two_sided) fn at_each_rate(
    session: &mut Session<'_>,
    metric: Metric,
    open: OpenScheduled<'_>,
) -> Result<()> {
    let seed = session.plan.settings.launch.map_or(0, |launch| launch.order);
    let open = |cx: &Context<'_>, case: &Case| {
        // A rate that is not possible is the reason of a skipped row.
        let rate = case.get::<Rate>().of_messages(case.bytes.0)?;
        open(cx, case, Schedule { rate, arrivals: case.get(), seed })
    };
    let kind = KernelKind::with_work(metric, |case| Work { bytes: case.bytes.0, ops: 1, legs: 1 });
    row::every_case(session, &KernelFactory::new(kind, &open))
}

/// Minimum number of requests for the figures.
const LEAST: usize = 20;
/// Number of parts of a round, whose rates give the interval.
const PARTS: usize = 20;

/// Load of a round.
#[derive(Debug, Clone, PartialEq)]
struct Load {
    offered: u64,
    requests: usize,
    /// Achieved rate, with the ends of its interval.
    achieved: Option<(f64, Option<[f64; 2]>)>,
    backlog: Option<f64>,
}

impl Load {
    /// Returns the load of an offered rate, before any round.
    fn offered(offered: u64) -> Load {
        Load { offered, requests: 0, achieved: None, backlog: None }
    }

    /// Takes a round if it is the longest: scheduled times, arrivals of replies and latencies, in nanoseconds.
    fn take(
        &mut self,
        due: impl Iterator<Item = u64>,
        completed: impl Iterator<Item = u64>,
        latencies: &[u64],
    ) {
        if latencies.len() < self.requests {
            return;
        }
        let [due, completed]: [Vec<f64>; 2] =
            [due.map(|ns| ns as f64).collect(), completed.map(|ns| ns as f64).collect()];
        let latencies: Vec<f64> = latencies.iter().map(|ns| *ns as f64).collect();
        self.requests = latencies.len();
        self.achieved = achieved(&completed);
        self.backlog = backlog(&due, &latencies);
    }

    /// Returns the figures.
    fn figures(&self) -> Figures {
        let unresolved = || Figure::Unresolved(format!("the achieved rate needs {LEAST} requests"));
        let of = |value: Option<f64>| value.map_or_else(unresolved, Figure::Value);
        let mut figures = Figures::from([
            (OFFERED.to_owned(), Figure::Value(self.offered as f64)),
            (ACHIEVED.to_owned(), of(self.achieved.map(|(rate, _)| rate))),
            (BACKLOG.to_owned(), of(self.backlog)),
        ]);
        if let Some((_, Some([low, high]))) = self.achieved {
            let ends = [("achieved_low_rps", low), ("achieved_high_rps", high)];
            figures.extend(ends.map(|(name, end)| (name.to_owned(), Figure::Value(end))));
        }
        figures
    }
}

/// Returns the rate of replies per second from the first to the last, and its interval from the rates of parts.
fn achieved(completed: &[f64]) -> Option<(f64, Option<[f64; 2]>)> {
    let (first, last) = (completed.first()?, completed.last()?);
    let rate = |requests: usize, from: f64, to: f64| requests as f64 * 1e9 / (to - from);
    let whole = rate(completed.len() - 1, *first, *last);
    if completed.len() < LEAST || !whole.is_finite() {
        return None;
    }
    let part = (completed.len() - 1) / PARTS;
    let ends: Vec<f64> = completed.iter().step_by(part.max(1)).copied().collect();
    let times: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]) / part.max(1) as f64).collect();
    let interval = Summary::of_batches(&times).and_then(|summary| summary.ci95);
    // The interval is about the median of parts, and replies may arrive together.
    let interval = interval
        .map(|[low, high]| [(1e9 / high).min(whole), (1e9 / low).max(whole)])
        .filter(|ends| ends.iter().all(|end| end.is_finite() && *end > 0.0));
    Some((whole, interval))
}

/// Returns by how much the latency grew from the first to the last tenth of a round, in percent of the time between them.
fn backlog(due: &[f64], latencies: &[f64]) -> Option<f64> {
    let tenth = latencies.len() / 10;
    if latencies.len() < LEAST {
        return None;
    }
    let last = latencies.len() - tenth;
    let grown = median(&latencies[last..])? - median(&latencies[..tenth])?;
    let elapsed = median(&due[last..])? - median(&due[..tenth])?;
    let percent = 100.0 * grown / elapsed;
    percent.is_finite().then_some(percent)
}

/// Largest offered rate. A reading of the clock takes a considerable part of shorter intervals.
const MAX_RATE: u64 = 10_000_000;

crate::parameter! {
    /// Intervals between scheduled requests
    pub enum Arrivals: "arrivals", IfChosen, default Constant {
        /// All equal
        Constant = "constant",
        /// Exponentially distributed: a Poisson process, as of many independent senders
        Exponential = "exponential",
    }
}

/// Offered rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Messages per second.
    Messages(u64),
    /// Bits of payload per second.
    Bits(u64),
}

impl Rate {
    /// Returns the rate of messages of this many bytes, per second.
    ///
    /// # Errors
    /// [`Error::unsupported`] if no whole number of messages from 1 to 10 million has the rate within 1 %.
    pub fn of_messages(self, bytes: u64) -> Result<u64> {
        let bits = match self {
            Rate::Messages(rate) => return Ok(rate),
            Rate::Bits(bits) => bits as f64,
        };
        let exact = bits / (8.0 * bytes as f64);
        let rate = exact.round();
        if (1.0..=MAX_RATE as f64).contains(&rate) && (rate / exact - 1.0).abs() <= LARGEST_ERROR {
            Ok(rate as u64)
        } else {
            Err(Error::unsupported(format!(
                "{self} are {exact:.3} messages of {bytes} bytes per second; possible are whole numbers \
                 from 1 to {MAX_RATE}"
            )))
        }
    }
}

impl ParameterValue for Rate {
    const PARAMETER: &'static Parameter = &Parameter::read_by(
        "rate",
        "RATES",
        "Messages per second that are offered, or bits per second of their payload, each with a row, for \
         example: --rate 1000..64000:x4 or --rate 100Mbit/s,1Gbit/s",
        Reader::List(|text| Ok(parse_rates(text)?.into_iter().map(Value::new).collect())),
    )
    .usually("1000,10000,100000")
    .named(Named::First(shown));
    const DEFAULT: Rate = Rate::Messages(1000);

    fn parse(text: &str) -> Result<Rate> {
        match *parse_rates(text)? {
            [rate] => Ok(rate),
            _ => Err(Error::usage(format!("{text:?} is not one rate"))),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Returns the messages per second of a case; the rate itself if it is not possible.
fn shown(values: &CaseValues, bytes: Bytes) -> Option<String> {
    let rate: Rate = values.find()?;
    Some(rate.of_messages(bytes.0).map_or(rate.to_string(), |rate| rate.to_string()))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Messages(rate) => rate.fmt(f),
            Rate::Bits(bits) => {
                let (name, unit) =
                    BIT_UNITS.iter().find(|(_, unit)| bits.is_multiple_of(*unit)).unwrap_or(&("bit/s", 1));
                write!(f, "{}{name}", bits / unit)
            }
        }
    }
}

/// Largest relative error of a rate in bits per second.
const LARGEST_ERROR: f64 = 0.01;
/// Units of bits per second.
const BIT_UNITS: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000), ("bit/s", 1)];

/// Reads a list of rates: messages per second as `1000,2000` or `1000..64000:x4`, bits per second as `100Mbit/s,1Gbit/s`.
///
/// # Errors
/// Usage error for malformed rates, rates of 0 and rates above 10 million messages.
pub fn parse_rates(text: &str) -> Result<Vec<Rate>> {
    let bad = || {
        let examples = "use numbers such as 1000,2000, a range such as 1000..64000:x4, or bits such as \
                        100Mbit/s,1Gbit/s";
        Error::usage(format!("{text:?} is no list of 1 to {MAX_RATE} messages per second; {examples}"))
    };
    if text.ends_with("bit/s") {
        let mut rates = Vec::new();
        for item in text.split(',') {
            let rate = parse_bits(item).ok_or_else(bad)?;
            if !rates.contains(&rate) {
                rates.push(rate);
            }
        }
        return Ok(rates);
    }
    let rates = parse_numbers(text, MAX_RATE).ok_or_else(bad)?;
    Ok(rates.into_iter().map(Rate::Messages).collect())
}

/// Returns the rate of a text in bits per second, as `100Mbit/s`; `None` for other texts.
fn parse_bits(text: &str) -> Option<Rate> {
    let (number, unit) = BIT_UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let digits = number.len() <= 9 && number.bytes().all(|b| b.is_ascii_digit());
    let bits = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(*unit)?;
    (bits > 0).then_some(Rate::Bits(bits))
}

/// Schedule of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Requests per second.
    pub rate: u64,
    /// Distribution of the intervals.
    pub arrivals: Arrivals,
    /// Seed of random intervals.
    pub seed: u64,
}

impl Schedule {
    /// Returns the mean interval in nanoseconds.
    pub fn interval_ns(&self) -> f64 {
        1e9 / self.rate as f64
    }

    /// Returns the scheduled times in nanoseconds after the start. The last of n requests is due n mean intervals after the start.
    pub fn times_ns(&self, requests: usize) -> Vec<f64> {
        let mut at = 0.0;
        let mut random = fastrand::Rng::with_seed(self.seed ^ self.rate);
        let times: Vec<f64> = (0..requests)
            .map(|_| {
                at += match self.arrivals {
                    Arrivals::Constant => 1.0,
                    // The inverse of the distribution function, at a number of [0, 1).
                    Arrivals::Exponential => -(1.0 - random.f64()).ln(),
                };
                at
            })
            .collect();
        // Random intervals are scaled so that the offered rate of every round is exact.
        let scale = self.interval_ns() * requests as f64 / at.max(f64::MIN_POSITIVE);
        times.into_iter().map(|time| time * scale).collect()
    }

    /// Returns the scheduled times in raw ticks after the start.
    pub(in crate::two_sided) fn ticks(&self, requests: usize, clock: &Clock) -> Vec<u64> {
        let tick_ns = clock.tick_ns();
        self.times_ns(requests).into_iter().map(|ns| (ns / tick_ns).round() as u64).collect()
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod load_tests {
    use super::*;

    /// Returns the load of 1000 requests per second to a server that takes `service_ns` for each.
    fn load(service_ns: u64) -> Load {
        let due: Vec<u64> = (1..=1000).map(|i| i * 1_000_000).collect();
        let mut free = 0;
        let serve = |due: &u64| {
            free = free.max(*due) + service_ns;
            free
        };
        let completed: Vec<u64> = due.iter().map(serve).collect();
        let latencies: Vec<u64> = due.iter().zip(&completed).map(|(due, at)| at - due).collect();
        let mut load = Load::offered(1000);
        load.take(due.into_iter(), completed.into_iter(), &latencies);
        load
    }

    #[test]
    fn a_rate_above_that_of_the_server_has_a_backlog() {
        let steady = load(990_000);
        assert_eq!(steady.backlog, Some(0.0));
        assert!((steady.achieved.unwrap().0 - 1000.0).abs() < 1e-6);
        let saturated = load(1_250_000);
        let (rate, interval) = saturated.achieved.unwrap();
        assert!((rate - 800.0).abs() < 1e-6, "{rate}");
        assert!(interval.is_some_and(|[low, high]| low <= rate && rate <= high), "{interval:?}");
        assert!((saturated.backlog.unwrap() - 25.0).abs() < 1e-6, "{saturated:?}");
    }

    #[test]
    fn short_rounds_resolve_nothing_and_do_not_replace_long_ones() {
        let mut load = Load::offered(10);
        load.take([1].into_iter(), [2].into_iter(), &[1]);
        assert!(matches!(&load.figures()[ACHIEVED], Figure::Unresolved(why) if why.contains("20 requests")));
        assert_eq!(load.figures()[OFFERED], Figure::Value(10.0));
        let mut long = super::load_tests::load(10);
        let before = long.clone();
        long.take([1].into_iter(), [2].into_iter(), &[1]);
        assert_eq!(long, before);
    }
}

#[cfg(test)]
mod schedule_tests {
    use super::*;

    #[test]
    fn rates_are_lists_and_ranges() {
        assert_eq!(parse_rates("1000,250").unwrap(), [1000, 250].map(Rate::Messages));
        assert_eq!(parse_rates("1000..4000").unwrap(), [1000, 2000, 4000].map(Rate::Messages));
        assert_eq!(parse_rates("10..1000:x10").unwrap(), [10, 100, 1000].map(Rate::Messages));
        assert_eq!(parse_rates("64kbit/s,1Gbit/s").unwrap(), [64_000, 1_000_000_000].map(Rate::Bits));
        assert_eq!(parse_rates("1Gbit/s,1000Mbit/s").unwrap(), [Rate::Bits(1_000_000_000)]);
        for text in [
            "",
            "0",
            "1K",
            "1e3",
            "-5",
            "fast",
            "20000000",
            "10..1",
            "1,,2",
            "1.5",
            "0Mbit/s",
            "1.5Gbit/s",
            "1000,1Mbit/s",
            "Mbit/s",
            "-1bit/s",
            "1Mbit",
            "9999999999bit/s",
        ] {
            let error = parse_rates(text).unwrap_err();
            assert_eq!(error.kind(), ombx_record::error::Kind::Usage, "{text}");
            assert!(error.to_string().contains("messages per second"), "{error}");
        }
        assert_eq!(Rate::PARAMETER.defaults().join(","), "1000,10000,100000");
    }

    #[test]
    fn bits_are_messages_of_a_size() {
        assert_eq!(Rate::Bits(100_000_000).of_messages(1250).unwrap(), 10_000);
        assert_eq!(Rate::Messages(7).of_messages(1250).unwrap(), 7);
        assert_eq!(Rate::Bits(100_000_000).of_messages(1400).unwrap(), 8929);
        assert_eq!(
            [Rate::Bits(900_000_000_000), Rate::Bits(1_500_000)].map(|rate| rate.to_string()),
            ["900Gbit/s", "1500kbit/s"]
        );
        // 1.9 messages per second, and messages without bits.
        for (bits, bytes) in [(1000, 1400), (100_000_000_000, 64), (1_000_000, 65536), (8000, 0)] {
            let error = Rate::Bits(bits).of_messages(bytes).unwrap_err();
            assert_eq!(error.kind(), ombx_record::error::Kind::Unsupported, "{error}");
        }
    }

    #[test]
    fn schedules_have_the_offered_rate() {
        let schedule = Schedule { rate: 1000, arrivals: Arrivals::Constant, seed: 7 };
        assert_eq!(schedule.times_ns(3), [1e6, 2e6, 3e6]);
        let random = Schedule { arrivals: Arrivals::Exponential, ..schedule };
        let times = random.times_ns(10_000);
        assert!((times[9999] - 1e10).abs() < 1.0, "{}", times[9999]);
        assert!(times.is_sorted() && random.times_ns(0).is_empty());
        assert_ne!(times, Schedule { seed: 8, ..random }.times_ns(10_000));
        // The standard deviation of exponential intervals is their mean.
        let intervals = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1e6 - 1.0);
        let variance = intervals.map(|x| x * x).sum::<f64>() / 9999.0;
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }
}
