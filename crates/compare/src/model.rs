//! A model of the machine: parameters of LogGP from a ping-pong and a stream, and the sizes at which the protocol switches.
//!
//! LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995) says that a message of s bytes takes
//! o_s + (s - 1) G + L + o_r. Half a round trip of a ping-pong is this time. A window of n messages with one acknowledgement takes
//! (n - 1) (g + (s - 1) G) longer than one message with its acknowledgement (Hoefler, Lichei and Rehm, Low-Overhead LogGP Parameter
//! Assessment for Modern Interconnection Networks, IPDPS 2007: PRTT(n, 0, s) and PRTT(1, 0, s)). Both are lines of the message size,
//! until a library or a network treats longer messages in another way.
//!
//! | module | contents |
//! |---|---|
//! | `curve` | fits lines to the times of several launches |
//! | `loggp` | parameters of LogGP from two curves |
//! | `segments` | finds the sizes between which the line of a curve changes |
//! | `switch` | names what a change looks like |
//!
//! Each launch has its own lines between the same switches. A parameter is the median over launches, and its interval is that of
//! launches' medians.

mod segments;

use std::collections::{BTreeMap, BTreeSet};

use ombx_estimate::{
    launches::{LEAST_LAUNCHES, interval},
    samples::{CaseSamples, LaunchSamples},
};
use ombx_record::{result::Measurement, stats::median, unit::Bytes};

use crate::model::segments::Curve;

pub use self::segments::{Fit, Protocol, Segment, Switch};

/// Ping-pongs whose half round trip is the time of one message, and the streams that go with them.
const PATTERNS: [[&str; 2]; 3] = [
    ["p2p.latency", "p2p.bw"],
    ["p2p.latency_persistent", "p2p.bw_persistent"],
    ["sockets.latency", "sockets.bw"],
];

/// A benchmark with its axes, of which a curve comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Name of the benchmark, axes and depth: `p2p.bw buffers=multiple depth=64`.
    pub name: String,
    /// Message sizes that were left out: launches lack them or have no positive time for them, or were in two groups of times.
    pub left_out: usize,
    /// Launches that were left out, because the machine was in another state.
    pub other_states: usize,
}

/// A parameter of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Symbol, as in `L + o_s + o_r`.
    pub symbol: &'static str,
    /// Unit of its value.
    pub unit: &'static str,
    /// The value; `None` if it is not resolved.
    pub value: Option<f64>,
    /// 95 % interval of the value, or bounds of a value that is not resolved.
    pub interval: Option<[f64; 2]>,
    /// Where the value comes from, or why there is none.
    pub note: String,
}

/// The model of one ping-pong in one setup.
#[derive(Debug, Clone)]
pub struct MachineModel {
    /// Number of the setup, as in [`CaseSamples`].
    pub setup: usize,
    /// The ping-pong.
    pub latency: Pattern,
    /// The stream.
    pub stream: Option<Pattern>,
    /// One-way times.
    pub one_way: Option<Fit>,
    /// Gaps: times from one message of a stream to the next.
    pub gaps: Option<Fit>,
    /// Name of each switch of the one-way times.
    pub protocols: Vec<Protocol>,
    /// L + o_s + o_r, L, o_s, o_r, g and G.
    pub parameters: Vec<Parameter>,
}

/// Rows of one benchmark that differ in size only.
struct Rows<'a> {
    /// Cases in the most frequent state, at least one.
    cases: Vec<&'a CaseSamples>,
    /// Largest number of launches of a case in other states.
    other_states: usize,
}

/// Returns a model for each ping-pong, from the launches in the most frequent state of the machine. The cases are in the order of
/// [`ombx_estimate::samples::SampleStore::into_cases`].
pub fn models(cases: &[CaseSamples]) -> Vec<MachineModel> {
    let all: Vec<Rows<'_>> = cases.chunk_by(differ_in_size).map(Rows::new).collect();
    let ping_pongs = all.iter().filter_map(|rows| Some((rows, stream_of(rows.bench())?)));
    let model = |(latency, bench): (&Rows<'_>, &str)| {
        let streams = all.iter().filter(|rows| rows.bench() == bench && rows.goes_with(latency));
        machine_model(latency, streams.max_by_key(|rows| rows.row().depth), bench)
    };
    ping_pongs.map(model).collect()
}

/// Returns the lines of the one-way times of a ping-pong; `None` if the cases are no ping-pong, or too few for a line. They differ in
/// size only and are in ascending order.
pub fn one_way(cases: &[&CaseSamples]) -> Option<Fit> {
    stream_of(&cases.first()?.row().bench)?;
    Rows { cases: cases.to_vec(), other_states: 0 }.curve().fit()
}

/// Returns whether a model uses rows of this benchmark.
pub fn is_used(bench: &str) -> bool {
    PATTERNS.as_flattened().contains(&bench)
}

/// Returns whether this benchmark is a ping-pong that has a model.
pub fn is_ping_pong(bench: &str) -> bool {
    stream_of(bench).is_some()
}

fn stream_of(bench: &str) -> Option<&'static str> {
    PATTERNS.iter().find(|[latency, _]| *latency == bench).map(|[_, stream]| *stream)
}

fn differ_in_size(a: &CaseSamples, b: &CaseSamples) -> bool {
    let key = |case: &CaseSamples| {
        let row = case.row();
        (case.setup, row.bench.clone(), row.axes.clone(), row.depth, row.pairs)
    };
    key(a) == key(b)
}

impl<'a> Rows<'a> {
    fn new(cases: &'a [CaseSamples]) -> Rows<'a> {
        let of_size = |cases: &'a [CaseSamples]| -> usize {
            cases.iter().filter(|case| case.other.is_some()).map(|case| case.launches.len()).sum()
        };
        let by_size = cases.chunk_by(|a, b| a.row().bytes == b.row().bytes);
        Rows {
            cases: cases.iter().filter(|case| case.other.is_none()).collect(),
            other_states: by_size.map(of_size).max().unwrap_or(0),
        }
    }
}

impl Rows<'_> {
    fn row(&self) -> &Measurement {
        self.cases[0].row()
    }

    fn bench(&self) -> &str {
        &self.row().bench
    }

    /// Returns whether both were measured in the same setup, with the same value of each axis that both have.
    fn goes_with(&self, other: &Rows<'_>) -> bool {
        let (own, others) = (&self.row().axes, &other.row().axes);
        let agree = |(axis, value): (&String, &String)| others.get(axis).is_none_or(|other| other == value);
        self.cases[0].setup == other.cases[0].setup && own.iter().all(agree)
    }

    fn name(&self) -> String {
        let row = self.row();
        let axes = row.axes.iter().map(|(axis, value)| format!(" {axis}={value}")).collect::<String>();
        let depth = row.depth.map(|depth| format!(" depth={depth}")).unwrap_or_default();
        format!("{}{axes}{depth}", row.bench)
    }

    /// Returns the median time of an iteration or leg by size and launch. A message without bytes has no place in the model. Rows
    /// end after different numbers of launches: those that most sizes have count, and at least [`LEAST_LAUNCHES`] if they can.
    fn curve(&self) -> Curve {
        let times = |case: &CaseSamples| -> BTreeMap<usize, f64> {
            let of_launch =
                |launch: &LaunchSamples| Some((launch.number, launch.row.summary.as_ref()?.median));
            case.launches.iter().filter_map(of_launch).filter(|(_, median)| *median > 0.0).collect()
        };
        let all = self.cases.iter().filter_map(|case| Some((case.row().bytes?, times(case))));
        let all: Vec<(u64, BTreeMap<usize, f64>)> = all.filter(|(bytes, _)| *bytes > 0).collect();
        let mut sets: BTreeMap<BTreeSet<usize>, usize> = BTreeMap::new();
        all.iter().for_each(|(_, times)| *sets.entry(times.keys().copied().collect()).or_default() += 1);
        let sizes_with = |set: &BTreeSet<usize>| -> usize {
            sets.iter().filter(|(other, _)| set.is_subset(other)).map(|(_, sizes)| sizes).sum()
        };
        let worth =
            |set: &BTreeSet<usize>| (sizes_with(set) * set.len().min(LEAST_LAUNCHES as usize), set.len());
        let launches = sets.keys().max_by_key(|set| worth(set)).cloned().unwrap_or_default();
        let is_complete =
            |times: &BTreeMap<usize, f64>| launches.iter().all(|number| times.contains_key(number));
        let complete: Vec<_> = all.iter().filter(|(_, times)| is_complete(times)).collect();
        let sizes = complete.iter().map(|(bytes, _)| *bytes).collect();
        let of_launch = |number: &usize| complete.iter().map(|(_, times)| times[number]).collect();
        Curve {
            sizes,
            launches: launches.iter().map(of_launch).collect(),
            numbers: launches.into_iter().collect(),
        }
    }

    fn pattern(&self, curve: &Curve) -> Pattern {
        let measured =
            self.cases.iter().filter(|case| case.row().bytes.is_some_and(|bytes| bytes > 0)).count();
        let Rows { other_states, .. } = *self;
        Pattern { name: self.name(), left_out: measured - curve.sizes.len(), other_states }
    }
}

/// Returns the gaps: (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1), where PRTT(1, 0, s) is one message of the ping-pong and an
/// acknowledgement of the smallest size, in the launches that both curves have; without any, launches are taken in their order.
fn gaps(one_way: &Curve, windows: &Curve, depth: u32) -> Curve {
    let place = |curve: &Curve, number: usize| curve.numbers.iter().position(|known| *known == number);
    let mut both: Vec<(usize, usize, usize)> = one_way
        .numbers
        .iter()
        .filter_map(|number| Some((*number, place(one_way, *number)?, place(windows, *number)?)))
        .collect();
    if both.is_empty() {
        // Both were measured by commands of their own.
        let pairs = one_way.launches.len().min(windows.launches.len());
        both = (0..pairs).map(|at| (at, at, at)).collect();
    }
    let column = |bytes: u64| {
        let launches = both.iter().map(|(_, launch, other)| ((one_way, *launch), (windows, *other)));
        launches.map(|(single, several)| gap(single, several, depth, bytes)).collect::<Option<Vec<f64>>>()
    };
    let columns = windows.sizes.iter().filter_map(|bytes| Some((*bytes, column(*bytes)?)));
    let (sizes, columns): (Vec<u64>, Vec<Vec<f64>>) = columns.unzip();
    let launches = (0..both.len()).map(|at| columns.iter().map(|gaps| gaps[at]).collect()).collect();
    Curve { sizes, launches, numbers: both.into_iter().map(|(number, ..)| number).collect() }
}

/// Returns the gap of a size in a launch of each curve; `None` without a gap above 0.
fn gap(
    (one_way, launch): (&Curve, usize),
    (windows, other): (&Curve, usize),
    depth: u32,
    bytes: u64,
) -> Option<f64> {
    let at = |curve: &Curve| curve.sizes.binary_search(&bytes).ok();
    let times = &one_way.launches[launch];
    let single = times[at(one_way)?] + times[0];
    let gap = (windows.launches[other][at(windows)?] - single) / f64::from(depth - 1);
    (gap > 0.0).then_some(gap)
}

/// Returns the model of a ping-pong and its stream.
fn machine_model(latency: &Rows<'_>, stream: Option<&Rows<'_>>, bench: &str) -> MachineModel {
    let one_way = latency.curve();
    let fit = one_way.fit();
    let is_mpi = latency.bench().starts_with("p2p.");
    let gap_curve = match stream.map(|rows| (rows, rows.row().depth.unwrap_or(1))) {
        None => Err(format!("needs {bench} of the same sizes and setup")),
        Some((_, 0 | 1)) => Err(format!("needs {bench} with several messages in flight: --window 64")),
        Some((rows, depth)) => Ok(gaps(&one_way, &rows.curve(), depth)),
    };
    let gap_fit = gap_curve.as_ref().ok().and_then(Curve::fit);
    let lack = gap_curve.as_ref().err().cloned().unwrap_or_else(|| {
        format!("{bench} and {} have fewer than 3 common sizes: measure at least 3", latency.bench())
    });
    let short = fit.as_ref().map(|fit| Estimate::new(fit.short()));
    let protocols = fit
        .as_ref()
        .zip(short)
        .map(|(fit, short)| segments::named_protocols(fit, short, is_mpi.then_some(Protocol::Rendezvous)))
        .unwrap_or_default();
    let sources = Sources { latency: latency.bench(), stream: bench, is_mpi, lack };
    MachineModel {
        setup: latency.cases[0].setup,
        latency: latency.pattern(&one_way),
        stream: stream.map(|rows| rows.pattern(gap_curve.as_ref().unwrap_or(&rows.curve()))),
        parameters: sources.parameters(fit.as_ref(), gap_fit.as_ref()),
        one_way: fit,
        gaps: gap_fit,
        protocols,
    }
}

/// Where parameters come from.
struct Sources<'a> {
    latency: &'a str,
    stream: &'a str,
    is_mpi: bool,
    /// Why there are no gaps, if there are none.
    lack: String,
}

impl Sources<'_> {
    fn parameters(&self, one_way: Option<&Fit>, gaps: Option<&Fit>) -> Vec<Parameter> {
        let short = one_way.map(|fit| Estimate::new(fit.short()));
        let gap = gaps.map(|fit| Estimate::new(fit.short()));
        let few = format!("{} has fewer than 3 sizes: measure at least 3", self.latency);
        let note = |bench: &str, fit: Option<&Fit>, lack: &str| match fit {
            Some(fit) => format!("{bench}, line of {}", sizes(fit.segments[0].bytes)),
            None => lack.to_owned(),
        };
        vec![
            resolved("L + o_s + o_r", "us", short, note(self.latency, one_way, &few)),
            self.latency_alone(one_way, gaps, &few),
            self.overhead("o_s", short, gap),
            self.overhead("o_r", short, gap),
            resolved("g", "us", gap, note(self.stream, gaps, &self.lack)),
            self.gap_per_byte(one_way, gaps),
        ]
    }

    /// Returns bounds of L: o_s and o_r are at least 0, and at most g if messages are not combined.
    fn latency_alone(&self, one_way: Option<&Fit>, gaps: Option<&Fit>, few: &str) -> Parameter {
        let most = one_way.and_then(|fit| Estimate::new(fit.short()).interval);
        let most = most.map(|ends| ends[1]).filter(|most| *most > 0.0);
        let least = match (one_way, gaps.filter(|_| self.is_mpi)) {
            (Some(one_way), Some(gaps)) => {
                let pairs = one_way.short().zip(gaps.short());
                Estimate::new(pairs.map(|(short, gap)| short - 2.0 * gap))
                    .interval
                    .map(|ends| ends[0].max(0.0))
            }
            _ => Some(0.0),
        };
        let why = match (one_way, self.is_mpi && gaps.is_some()) {
            (None, _) => few,
            (_, true) => {
                "bounds, because a ping-pong times L with o_s and o_r, which are at most g unless messages are combined"
            }
            (_, false) => "bounds, because a ping-pong times L with o_s and o_r, which are at least 0",
        };
        let interval = least.zip(most).map(|(least, most)| [least, most]);
        Parameter { symbol: "L", unit: "us", value: None, interval, note: why.to_owned() }
    }

    /// Returns bounds of an overhead.
    fn overhead(&self, symbol: &'static str, short: Option<Estimate>, gap: Option<Estimate>) -> Parameter {
        let high =
            |estimate: Option<Estimate>| estimate.and_then(|e| e.interval).map(|ends| ends[1].max(0.0));
        let most = match (high(short), high(gap.filter(|_| self.is_mpi))) {
            (Some(short), Some(gap)) => Some(short.min(gap)),
            (short, gap) => gap.or(short),
        };
        let note =
            "bounds; its value needs messages with a delay between them, which no benchmark of ombx has"
                .to_owned();
        Parameter { symbol, unit: "us", value: None, interval: most.map(|most| [0.0, most]), note }
    }

    /// Returns the time per byte of long messages.
    fn gap_per_byte(&self, one_way: Option<&Fit>, gaps: Option<&Fit>) -> Parameter {
        let last = |fit: &Fit| fit.segments.last().map(|segment| (segment.per_byte, sizes(segment.bytes)));
        let (estimate, note) = match (gaps.and_then(last), one_way.and_then(last)) {
            (Some((per_byte, sizes)), _) => (Some(per_byte), format!("{}, line of {sizes}", self.stream)),
            (None, Some((per_byte, sizes))) => (
                Some(per_byte),
                format!("{}, line of {sizes}, without streaming: {}", self.latency, self.lack),
            ),
            (None, None) => (None, self.lack.clone()),
        };
        resolved("G", "ns/byte", estimate, note)
    }
}

fn resolved(symbol: &'static str, unit: &'static str, estimate: Option<Estimate>, note: String) -> Parameter {
    let time = estimate.and_then(Estimate::as_time);
    let is_noise = estimate.is_some() && time.is_none();
    let note = if is_noise { format!("not above 0 within its noise: {note}") } else { note };
    Parameter {
        symbol,
        unit,
        value: time.map(|time| time.value),
        interval: time.and_then(|time| time.interval),
        note,
    }
}

/// Names a range of message sizes.
fn sizes([from, to]: [u64; 2]) -> String {
    format!("{} to {} bytes", Bytes(from), Bytes(to))
}

#[cfg(test)]
mod tests;

/// A value with its interval over launches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median over launches.
    pub value: f64,
    /// 95 % interval; with 2 to 5 launches their range; `None` for one launch.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// Returns the estimate from the values of launches in their order, at least one.
    pub(crate) fn new(values: impl Iterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        Estimate {
            value: median(&values).unwrap_or(f64::NAN),
            interval: interval(&values).map(|found| [found.low, found.high]),
        }
    }

    /// Returns the estimate of a time, which is never negative: `None` for a value that is not above 0, and 0 for an end below 0.
    pub fn as_time(self) -> Option<Estimate> {
        let interval = self.interval.map(|ends| ends.map(|end| end.max(0.0)));
        (self.value > 0.0).then_some(Estimate { interval, ..self })
    }

    /// Returns 1 or -1 if the whole interval is above or below 0, else 0.
    pub(crate) fn sign(&self) -> i8 {
        match self.interval {
            Some([low, _]) if low > 0.0 => 1,
            Some([_, high]) if high < 0.0 => -1,
            _ => 0,
        }
    }
}
