//! What is kept of a run in memory: provenance, rows with their raw samples, and how it ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    benchmark::{
        figure::Figures,
        layout::Aggregation,
        payload::Check,
        work::{Metric, Work},
    },
    measure::phases::Phases,
    stats::Summary,
    system::clock::Facts,
    team::Place,
};

/// Where, when and how rows were measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its name, unlike that of any other run.
    pub id: String,
    /// The command line.
    pub argv: Vec<String>,
    /// UTC, to the second.
    pub started: String,
    /// Version of ombx.
    pub version: String,
    /// `release` or `debug`.
    pub profile: String,
    /// What connects the ranks: `mpi`.
    pub fabric: String,
    /// The library and its version.
    pub library: String,
    /// Rank by rank.
    pub places: Vec<Place>,
    /// Rank 0's clock.
    pub clock: ClockFacts,
    /// The resolved plan, option by option.
    pub plan: BTreeMap<String, String>,
    /// Kept environment variables.
    pub env: BTreeMap<String, String>,
}

/// What is known of a clock, once it has left its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockFacts {
    /// `tsc` or `monotonic`.
    pub source: String,
    /// Smallest step.
    pub resolution_ns: u64,
    /// Cost of a reading.
    pub overhead_ns: u64,
}

impl From<Facts> for ClockFacts {
    fn from(facts: Facts) -> ClockFacts {
        let Facts { source, resolution_ns, overhead_ns } = facts;
        ClockFacts { source: source.into(), resolution_ns, overhead_ns }
    }
}

/// Raw samples of one timed rank, or of one thread of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Samples {
    /// Whose clock.
    pub rank: u32,
    /// Which thread of the rank; 0 where it has one.
    pub thread: u32,
    /// Iterations in each sample.
    pub batch: u64,
    /// Time of each batch, in the order in which they ran. Across a global clock: from the first rank's start of that batch
    /// to this rank's end.
    pub elapsed_ns: Vec<u64>,
    /// Samples that this rank started after the time that was agreed on, where one was.
    pub late: Vec<u64>,
    /// Round trips that were measured in turn with the samples, of which a part is subtracted from each.
    pub round_trips: Option<RoundTrips>,
}

impl Samples {
    /// What is subtracted from the time of each iteration, in nanoseconds.
    pub fn correction_ns(&self) -> f64 {
        let median = |trips: &RoundTrips| Some((trips.halves as f64, Summary::of(&trips.each_ns())?.median));
        self.round_trips.as_ref().and_then(median).map_or(0.0, |(halves, median)| halves * median / 2.0)
    }
}

/// Round trips of empty messages, measured in turn with samples that contain such a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoundTrips {
    /// How many halves of the median round trip are subtracted from a sample: 0, 1 or 2.
    pub halves: u64,
    /// Round trips in each of these samples.
    pub batch: u64,
    /// Time of each batch, in the order in which they ran.
    pub elapsed_ns: Vec<u64>,
}

/// The mean times of ranks, in nanoseconds of one leg, combined in the ways that OMB prints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcrossRanks {
    /// Of all ranks' means the mean: OMB's `Avg Latency`.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl RoundTrips {
    /// Time of one round trip, sample by sample, in nanoseconds.
    pub fn each_ns(&self) -> Vec<f64> {
        self.elapsed_ns.iter().map(|ns| *ns as f64 / self.batch as f64).collect()
    }
}

/// How a row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Measured.
    Ok,
    /// It cannot run here.
    Skipped(String),
    /// It ran and went wrong.
    Failed(String),
}

/// One reason for doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Stable word for programs: `preempted`.
    pub code: String,
    /// For the trust column: `preempted 12x`.
    pub short: String,
    /// What it means and what to do.
    pub advice: String,
}

impl Notice {
    /// One reason: its word, what is shown, what to do.
    pub fn new(code: &str, short: impl Into<String>, advice: impl Into<String>) -> Notice {
        Notice { code: code.into(), short: short.into(), advice: advice.into() }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Benchmark.
    pub bench: String,
    /// Stable name of the row.
    pub key: String,
    /// What the headline is.
    pub metric: Metric,
    /// Message size; `None` where the benchmark could not even choose sizes.
    pub bytes: Option<u64>,
    /// Operations in flight, of a benchmark that streams.
    pub depth: Option<u32>,
    /// Pairs at the same time, where there are several.
    pub pairs: u32,
    /// Ranks that took part.
    pub ranks: u32,
    /// Axis to value.
    pub axes: BTreeMap<String, String>,
    /// What one iteration does.
    pub work: Option<Work>,
    /// How the times of ranks combine.
    pub aggregation: Aggregation,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found of the payload.
    pub check: Check,
    /// Raw.
    pub samples: Vec<Samples>,
    /// Of the time of one leg, in nanoseconds, combined over ranks as `across` says.
    pub summary: Option<Summary>,
    /// What the benchmark tells beside times.
    pub figures: Figures,
    /// What could have spoiled it.
    pub trust: Vec<Notice>,
    /// Where its time went, where the engine measured it.
    pub phases: Option<Phases>,
}

/// A rate with its interval, derived from the time of an iteration by division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Per second.
    pub median: f64,
    /// Low and high.
    pub ci95: Option<[f64; 2]>,
}

/// The figure of a row that is shown first, in the unit of its metric: microseconds or MB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// The median, above 0.
    pub value: f64,
    /// Low and high.
    pub ci95: Option<[f64; 2]>,
}

impl Measurement {
    /// Returns a row of one pair, timed on rank 0, that holds no samples yet; fill in what is known by setting its fields.
    pub fn new(bench: impl Into<String>, key: impl Into<String>, metric: Metric, ranks: u32) -> Measurement {
        Measurement {
            bench: bench.into(),
            key: key.into(),
            metric,
            bytes: None,
            depth: None,
            pairs: 1,
            ranks,
            axes: BTreeMap::new(),
            work: None,
            aggregation: Aggregation::Origin,
            outcome: Outcome::Ok,
            check: Check::Off,
            samples: Vec::new(),
            summary: None,
            figures: Figures::new(),
            trust: Vec::new(),
            phases: None,
        }
    }

    /// MB/s (10^6 bytes), where bytes move and the metric is one of bandwidth.
    pub fn mb_per_s(&self) -> Option<Rate> {
        let work = self.work.filter(|w| w.bytes > 0)?;
        self.rate(work.bytes as f64 / 1e6)
    }

    /// Messages per second, where the metric is one of bandwidth.
    pub fn messages_per_s(&self) -> Option<Rate> {
        self.rate(self.work?.ops as f64)
    }

    /// The headline; `None` where the row has no figure that counts.
    pub fn headline(&self) -> Option<Headline> {
        let summary = self.summary.as_ref().filter(|s| s.median > 0.0 && self.outcome == Outcome::Ok)?;
        let us = |ns: f64| ns / 1e3;
        let (value, ci95) = match self.metric {
            Metric::Bandwidth => self.mb_per_s().map(|rate| (rate.median, rate.ci95))?,
            Metric::Latency => (us(summary.median), summary.ci95.map(|ends| ends.map(us))),
        };
        value.is_finite().then_some(Headline { value, ci95 })
    }

    fn rate(&self, per_iteration: f64) -> Option<Rate> {
        let summary = self.summary.as_ref().filter(|s| self.metric == Metric::Bandwidth && s.median > 0.0)?;
        let legs = self.work?.legs as f64;
        let of = |leg_ns: f64| per_iteration / (leg_ns * legs * 1e-9);
        let ci95 = summary.ci95.filter(|[low, _]| *low > 0.0).map(|[low, high]| [of(high), of(low)]);
        Some(Rate { median: of(summary.median), ci95 })
    }

    /// Summary of the combined times. Where a part of round trips is subtracted, the interval holds their uncertainty too.
    pub fn summarise(samples: &[Samples], legs: u64) -> Option<Summary> {
        let mut summary = Summary::of(&Measurement::combine(samples, legs))?;
        for trips in samples.iter().filter_map(|s| s.round_trips.as_ref()) {
            let halves = trips.halves as f64 / 2.0;
            let interval = Summary::of(&trips.each_ns()).and_then(|trips| Some((trips.median, trips.ci95?)));
            if let (Some([low, high]), Some((median, [least, most]))) = (summary.ci95, interval) {
                // What is subtracted turns round: its upper end lowers the difference.
                let below = (summary.median - low).hypot(halves * (most - median));
                let above = (high - summary.median).hypot(halves * (median - least));
                summary.ci95 = Some([summary.median - below, summary.median + above]);
            }
        }
        Some(summary)
    }

    /// Mean, smallest and largest of the ranks' mean times, where every rank was timed.
    pub fn across_ranks(&self) -> Option<AcrossRanks> {
        let legs = self.work?.legs as f64;
        let every = matches!(self.aggregation, Aggregation::Slowest | Aggregation::Global);
        let timed = self.samples.iter().filter(|s| every && !s.elapsed_ns.is_empty());
        let mean = |s: &Samples| {
            s.elapsed_ns.iter().map(|ns| *ns as f64).sum::<f64>()
                / (s.elapsed_ns.len() as f64 * s.batch as f64 * legs)
        };
        let means: Vec<f64> = timed.map(mean).collect();
        let first = *means.first()?;
        Some(AcrossRanks {
            mean: means.iter().sum::<f64>() / means.len() as f64,
            min: means.iter().copied().fold(first, f64::min),
            max: means.iter().copied().fold(first, f64::max),
        })
    }

    /// The combined time of one leg, sample by sample, in nanoseconds: the slowest rank or pair of each
    /// sample, less what is subtracted of round trips. Threads of a rank do not iterate in step, so the samples of each
    /// count by themselves. Samples that a rank started late are left out, unless there are no others.
    pub fn combine(samples: &[Samples], legs: u64) -> Vec<f64> {
        let n = samples.iter().map(|s| s.elapsed_ns.len()).min().unwrap_or(0);
        let threads: BTreeSet<u32> = samples.iter().map(|s| s.thread).collect();
        let less: Vec<f64> = samples.iter().map(Samples::correction_ns).collect();
        let leg = |(s, less): (&Samples, &f64), i: usize| {
            s.elapsed_ns[i] as f64 / (s.batch as f64 * legs as f64) - less
        };
        let slowest = |i: usize, thread: u32| {
            let of = samples.iter().zip(&less).filter(|(s, _)| s.thread == thread);
            of.map(|one| leg(one, i)).reduce(f64::max).unwrap_or(0.0)
        };
        let late: BTreeSet<u64> = samples.iter().flat_map(|s| s.late.iter().copied()).collect();
        let counts = |i: &usize| late.len() >= n || !late.contains(&(*i as u64));
        let slowest = &slowest;
        (0..n).filter(counts).flat_map(|i| threads.iter().map(move |thread| slowest(i, *thread))).collect()
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows.
    pub cases: u64,
    /// Of them skipped.
    pub skipped: u64,
    /// Of them failed, other than by payload.
    pub failed: u64,
    /// Of them with a wrong payload.
    pub corrupt: u64,
}

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &Measurement) {
        self.cases += 1;
        match (&row.outcome, &row.check) {
            (_, Check::Failed(_)) => self.corrupt += 1,
            (Outcome::Skipped(_), _) => self.skipped += 1,
            (Outcome::Failed(_), _) => self.failed += 1,
            (Outcome::Ok, _) => {}
        }
    }

    /// The exit code of a run with this tally.
    pub fn exit_code(&self, allow_skips: bool) -> u8 {
        match self {
            Tally { corrupt: 1.., .. } => 5,
            Tally { failed: 1.., .. } => 4,
            Tally { skipped: 1.., .. } if !allow_skips => 4,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
