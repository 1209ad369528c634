//! Results of a run in memory: provenance, rows with raw samples and marks, and numbers of rows.

mod check;
mod clock;
mod figure;
mod growth;
mod interval;
mod launched;
mod loaded;
mod mark;
mod phases;
mod place;
mod rate;
mod row_name;
mod run;
mod share;
pub(crate) mod valid;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::stats::{self, Percentile, Summary};

pub use self::{
    check::{Check, Mismatch},
    clock::ClockProperties,
    figure::{
        ACHIEVED, ALONE, BACKLOG, ConnectionCounters, Figure, Figures, LOAD_AGAIN, NO_LOAD, OFFERED,
        OVERLAPPING, SATURATED_PERCENT, interval_names,
    },
    growth::Growth,
    interval::Interval,
    launched::{Ended, Ending, Launched, RunOutcome},
    loaded::{Contents, LoadedFile, LoadedFiles, OtherFiles},
    mark::{Level, Mark, MarkCode},
    phases::Phases,
    place::{CpuQuota, Place, Placement},
    rate::{Headline, MESSAGE_RATE_UNIT, Rate, Rates},
    row_name::{KnownBatches, RowName},
    run::{ClockFacts, Run, Tally},
    share::{SHARES, Share},
    work::{Aggregation, BusTraffic, Metric, Work},
};

/// A percentile exists only if a reading of the clock, and its step, are at most this fraction of the sample.
const MAX_READING: f64 = 0.05;

/// Raw samples of one timed rank, or of one of its threads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// Timed rank.
    pub rank: u32,
    /// Thread of the rank, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thread: u32,
    /// Iterations per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub batch: u64,
    /// Time of each sample, in order. With [`Aggregation::Global`]: from the first rank's start to this rank's end.
    pub elapsed_ns: Vec<u64>,
    /// Where several pairs begin each sample together: time from the first start on the same clock to this rank's start. Empty
    /// otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started_ns: Vec<u64>,
    /// Numbers of the samples that this rank started after the agreed time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<u64>,
    /// Round trips that alternated with the samples; a part of them is subtracted from each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<RoundTrips>,
    /// How the samples are divided into rounds that start at different alignments; `None` if nothing was sent between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
}

/// Axis of rows for single alignments: how many messages were sent before, from where the first of them started.
pub const ALIGNMENT_AXIS: &str = "alignment";

/// Division of samples into rounds of equal length. Before each round ranks exchange untimed messages, so that the rounds start at
/// different positions in the queues of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rounds {
    /// Samples of a round. The last one may have fewer.
    #[cfg_attr(feature = "schema", schemars(range(min = 2)))]
    pub samples: u32,
    /// Seed of the numbers of messages.
    pub seed: u64,
}

impl Samples {
    /// Returns the time of a sample from the first start on the same clock to this rank's end, in nanoseconds.
    pub fn until_end_ns(&self, sample: usize) -> u64 {
        self.elapsed_ns[sample].saturating_add(self.started_ns.get(sample).copied().unwrap_or(0))
    }

    /// Returns what is subtracted from the time of each iteration, in nanoseconds.
    pub fn correction_ns(&self) -> f64 {
        let median = |trips: &RoundTrips| Some((trips.halves as f64, Summary::new(&trips.each_ns())?.median));
        self.round_trips.as_ref().and_then(median).map_or(0.0, |(halves, median)| halves * median / 2.0)
    }
}

/// Round trips of empty messages that alternated with samples which contain such a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTrips {
    /// Halves of the median round trip that are subtracted from an iteration: 0, 1 or 2.
    #[cfg_attr(feature = "schema", schemars(range(max = 2)))]
    pub halves: u64,
    /// Round trips per batch.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub batch: u64,
    /// Time of each batch, in order.
    pub elapsed_ns: Vec<u64>,
}

/// Mean, minimum and maximum over the mean times of timed ranks, as OMB prints them; in nanoseconds per leg.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcrossRanks {
    /// Mean of the ranks' means: `Avg Latency` of OMB.
    #[serde(rename = "mean_ns")]
    pub mean: f64,
    /// Smallest mean.
    #[serde(rename = "min_ns")]
    pub min: f64,
    /// Largest mean.
    #[serde(rename = "max_ns")]
    pub max: f64,
}

impl RoundTrips {
    /// Returns the time of one round trip for each batch, in nanoseconds.
    pub fn each_ns(&self) -> Vec<f64> {
        self.elapsed_ns.iter().map(|ns| *ns as f64 / self.batch as f64).collect()
    }
}

/// Returns an interval with one step of the clock more at each end: a time can be wrong by almost a step in either direction.
fn widened([low, high]: [f64; 2], step: f64) -> [f64; 2] {
    [(low - step).max(low.min(0.0)), high + step]
}

/// Returns the samples of single iterations: the samples, or the tail if they are of batches.
fn of_single_iterations<'s>(samples: &'s [Samples], tail: &'s [Samples]) -> &'s [Samples] {
    if samples.iter().all(|s| s.batch == 1) { samples } else { tail }
}

/// Returns a percentile whose bounds contain a step of the clock at each end; `None` if a reading is a considerable part of it.
fn resolved(p: Percentile, single: &[Samples], legs: u64, clock: ClockProperties) -> Option<Percentile> {
    let step = clock.resolution_ns as f64 / legs as f64;
    let resolved = p.value >= least_percentile(single, legs, clock);
    resolved.then(|| Percentile { ci95: p.ci95.map(|ends| widened(ends, step)), ..p })
}

/// Returns the least percentile of which a reading of the clock is no considerable part.
fn least_percentile(single: &[Samples], legs: u64, clock: ClockProperties) -> f64 {
    let correction = single.first().map_or(0.0, Samples::correction_ns);
    let reading = clock.overhead_ns.max(clock.resolution_ns) as f64 / legs as f64;
    reading / MAX_READING - correction
}

/// Outcome of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", content = "reason", rename_all = "lowercase")]
pub enum Outcome {
    /// The row was measured.
    Ok,
    /// The case cannot run here, with the reason.
    Skipped(String),
    /// The case failed, with the reason.
    Failed(String),
}

/// One row: a case that was measured, skipped or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// Name of the benchmark.
    pub bench: String,
    /// Stable name of the row.
    pub key: String,
    /// Figure that is shown first.
    pub metric: Metric,
    /// Message size; `None` if the benchmark was skipped as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Operations in flight, for benchmarks that stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub depth: Option<u32>,
    /// Pairs of ranks that ran at the same time; 1 without pairs.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub pairs: u32,
    /// Number of ranks that took part.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub ranks: u32,
    /// Values by parameter.
    #[serde(default)]
    pub axes: BTreeMap<String, String>,
    /// Work of one iteration; `None` if the benchmark was skipped as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Bytes that define the algorithm and bus bandwidth; `None` if the operation has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<BusTraffic>,
    /// Rule that combined the times of ranks.
    #[serde(rename = "across")]
    pub aggregation: Aggregation,
    /// Whether the row was measured.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Result of the payload verification.
    #[serde(flatten)]
    pub check: Check,
    /// Number of iterations whose payload was checked, each with a pattern of its own; 0 if unknown. Where a check sees a part of what an
    /// iteration delivers, several iterations count as one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checked: u64,
    /// Raw samples of each timed rank and thread.
    #[serde(default)]
    pub samples: Vec<Samples>,
    /// Raw samples of single iterations, from which the percentiles come; empty if `samples` are of single iterations, or if the
    /// number of iterations was fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Samples>,
    /// Estimates of the aggregated time of one leg, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Figures of the benchmark in addition to times.
    #[serde(default, skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
    /// Counters of the hosts' devices that grew since they were read before: those of errors in the row before, those of load at most a second
    /// before the row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grown: Vec<Growth>,
    /// Marks: what could have disturbed the row.
    #[serde(default)]
    pub trust: Vec<Mark>,
    /// Time of its phases; `None` for skipped rows and for rows that the engine did not measure.
    #[serde(default, rename = "phases_ns", skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The launches that it summarises; `None` for the row of a single launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<OverLaunches>,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

fn one() -> u32 {
    1
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
            bus: None,
            aggregation: Aggregation::Origin,
            outcome: Outcome::Ok,
            check: Check::Off,
            checked: 0,
            samples: Vec::new(),
            tail: Vec::new(),
            summary: None,
            figures: Figures::new(),
            grown: Vec::new(),
            trust: Vec::new(),
            phases: None,
            launches: None,
        }
    }

    /// Returns the iterations per sample; `None` if nothing was measured.
    pub fn batch(&self) -> Option<u64> {
        let over = self.launches.as_ref().filter(|over| !over.medians_ns.is_empty());
        over.map(|over| over.batch).or(self.samples.first().map(|samples| samples.batch))
    }

    /// Returns what the row summarises if it comes from several launches.
    pub fn over_launches(&self) -> Option<&OverLaunches> {
        self.launches.as_ref().filter(|over| over.medians_ns.len() > 1)
    }

    /// Returns the number of launches that the row comes from.
    pub fn launch_count(&self) -> usize {
        self.launches.as_ref().map_or(1, |over| over.medians_ns.len())
    }

    /// Returns the number of launches behind the headline: those in the most frequent state of the machine.
    pub fn launches_in_state(&self) -> usize {
        self.launches.as_ref().map_or(1, OverLaunches::in_state)
    }

    /// Returns the smallest and the largest median of the launches behind the headline, in its unit; `None` for a single launch.
    pub fn launch_range(&self) -> Option<[f64; 2]> {
        let medians = self.over_launches()?.medians_in_state();
        let ends = [f64::min, f64::max]
            .map(|pick: fn(f64, f64) -> f64| medians.iter().copied().fold(medians[0], pick));
        let [low, high] = ends.map(|ns| self.in_unit(ns));
        Some([low?.min(high?), low?.max(high?)])
    }

    /// Converts a time of one leg in nanoseconds to the unit of the headline; `None` if the result is not a positive number.
    pub fn in_unit(&self, leg_ns: f64) -> Option<f64> {
        let value = match self.metric {
            Metric::Latency => leg_ns / 1e3,
            Metric::Bandwidth => {
                let work = self.work.filter(|work| work.bytes > 0)?;
                work.bytes as f64 * 1e3 / (leg_ns * work.legs as f64)
            }
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// Returns the number of operations whose payload was checked.
    pub fn checked_operations(&self) -> u64 {
        self.checked.saturating_mul(self.work.map_or(1, |work| work.ops.max(1)))
    }

    /// Returns the value of a figure; `None` if the row does not have it, or it was not resolved.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name)?.value()
    }

    /// Returns the marks that are more than notes.
    pub fn doubts(&self) -> impl Iterator<Item = &Mark> {
        self.marks(Level::Caution)
    }

    /// Returns the marks of this level and above.
    pub fn marks(&self, least: Level) -> impl Iterator<Item = &Mark> {
        self.trust.iter().filter(move |mark| mark.level >= least)
    }

    /// Summarises the aggregated times, without percentiles. If a part of round trips is subtracted, the interval contains their
    /// uncertainty too. It also contains one step of the clock at each end.
    pub fn summarise(samples: &[Samples], legs: u64, clock: ClockProperties) -> Option<Summary> {
        if samples.iter().any(|s| !s.started_ns.is_empty()) {
            return Summary::of_total(&Measurement::combine(samples, legs));
        }
        let rounds = Measurement::combine_rounds(samples, legs);
        let mut summary = match rounds.as_slice() {
            [] => Summary::of_batches(&Measurement::combine(samples, legs))?,
            rounds => Summary::of_rounds(rounds)?,
        };
        drop(rounds);
        for trips in samples.iter().filter_map(|s| s.round_trips.as_ref()) {
            let halves = trips.halves as f64 / 2.0;
            let interval =
                Summary::of_batches(&trips.each_ns()).and_then(|trips| Some((trips.median, trips.ci95?)));
            if let (Some([low, high]), Some((median, [least, most]))) = (summary.ci95, interval) {
                // The upper end of what is subtracted is the lower end of the difference.
                let below = (summary.median - low).hypot(halves * (most - median));
                let above = (high - summary.median).hypot(halves * (median - least));
                summary.ci95 = Some([summary.median - below, summary.median + above]);
            }
        }
        let batch = samples.iter().map(|s| s.batch).min().unwrap_or(1);
        let step = clock.resolution_ns as f64 / (batch * legs) as f64;
        summary.ci95 = summary.ci95.map(|ends| widened(ends, step));
        Some(summary)
    }

    /// Adds percentiles to a summary: of the samples if they are of single iterations, else of the tail.
    ///
    /// A sample of a single iteration contains one reading of the clock. If that is a considerable part of a percentile, there is none.
    pub fn take_percentiles(
        summary: &mut Summary,
        [samples, tail]: [&[Samples]; 2],
        legs: u64,
        clock: ClockProperties,
    ) {
        let single = of_single_iterations(samples, tail);
        summary.take_percentiles(&Measurement::combine(single, legs));
        for one in [&mut summary.p95, &mut summary.p99, &mut summary.p999] {
            *one = one.and_then(|p| resolved(p, single, legs, clock));
        }
    }

    /// Returns the samples of single iterations, from which the percentiles come.
    pub fn of_single_iterations(&self) -> &[Samples] {
        of_single_iterations(&self.samples, &self.tail)
    }

    /// Returns percentiles of the time of one leg from the raw samples, by the same rules; each `None` if it is not resolved.
    /// `quantiles` are between 0 and 1.
    pub fn percentiles(&self, quantiles: &[f64], clock: ClockProperties) -> Vec<Option<Percentile>> {
        let legs = self.work.map_or(1, |work| work.legs);
        let single = self.of_single_iterations();
        let found = stats::percentiles(&Measurement::combine(single, legs), quantiles);
        found.into_iter().map(|p| p.and_then(|p| resolved(p, single, legs, clock))).collect()
    }

    /// Returns the times of single iterations, from which percentiles over several launches come.
    pub fn single_times(&self, clock: ClockProperties) -> SingleTimes {
        let legs = self.work.map_or(1, |work| work.legs);
        let single = self.of_single_iterations();
        // Single precision would have steps of 2 ns above 16.8 ms.
        let mut times: Vec<f64> = Measurement::combine(single, legs);
        times.sort_unstable_by(f64::total_cmp);
        SingleTimes {
            counts: times.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).collect(),
            least_ns: least_percentile(single, legs, clock),
            step_ns: clock.resolution_ns as f64 / legs as f64,
        }
    }

    /// Returns mean, minimum and maximum of the mean times of the timed ranks; `None` if only rank 0 was timed.
    ///
    /// Of several pairs, they are the pairs' own times, without waiting for the start of other pairs.
    pub fn across_ranks(&self) -> Option<AcrossRanks> {
        if let Some(over) = &self.launches {
            return over.across;
        }
        let legs = self.work?.legs as f64;
        let several = self.aggregation != Aggregation::Origin;
        let timed = self.samples.iter().filter(|s| several && !s.elapsed_ns.is_empty());
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

    /// Returns the aggregated time of one leg for each sample, in nanoseconds.
    ///
    /// It is the time of the slowest rank, after subtraction of round trips. Of several pairs, it is the time from the first start
    /// to the last end, on each clock of the timed ranks; the largest of these counts. Threads of a rank do not iterate in step, so
    /// the samples of each thread are separate values. Samples that a rank started late are left out, unless all are late.
    pub fn combine(samples: &[Samples], legs: u64) -> Vec<f64> {
        combined(samples, legs).into_iter().map(|(_, ns)| ns).collect()
    }

    /// Returns the same times by rounds; nothing if the samples are not divided into rounds, or if their headline is a mean.
    pub fn combine_rounds(samples: &[Samples], legs: u64) -> Vec<Vec<f64>> {
        let is_mean = samples.iter().any(|s| !s.started_ns.is_empty());
        let Some(rounds) = samples.first().and_then(|s| s.rounds).filter(|_| !is_mean) else {
            return Vec::new();
        };
        let round = |(at, _): &(usize, f64)| at / rounds.samples.max(1) as usize;
        let times = combined(samples, legs);
        let rounds = times.chunk_by(|one, next| round(one) == round(next));
        rounds.map(|times| times.iter().map(|(_, ns)| *ns).collect()).collect()
    }
}

/// Returns what [`Measurement::combine`] returns, each time with the number of its sample.
fn combined(samples: &[Samples], legs: u64) -> Vec<(usize, f64)> {
    let n = samples.iter().map(|s| s.elapsed_ns.len()).min().unwrap_or(0);
    let threads: BTreeSet<u32> = samples.iter().map(|s| s.thread).collect();
    let corrections: Vec<f64> = samples.iter().map(Samples::correction_ns).collect();
    let leg = |(s, correction): (&Samples, &f64), i: usize| {
        s.until_end_ns(i) as f64 / (s.batch as f64 * legs as f64) - correction
    };
    let slowest = |i: usize, thread: u32| {
        let of = samples.iter().zip(&corrections).filter(|(s, _)| s.thread == thread);
        of.map(|one| leg(one, i)).reduce(f64::max).unwrap_or(0.0)
    };
    let late: BTreeSet<u64> = samples.iter().flat_map(|s| s.late.iter().copied()).collect();
    let on_time = |i: &usize| late.len() >= n || !late.contains(&(*i as u64));
    let slowest = &slowest;
    (0..n).filter(on_time).flat_map(|i| threads.iter().map(move |thread| (i, slowest(i, *thread)))).collect()
}

/// What an estimate over several launches adds to a row. The median of its summary is the median of the launches' medians in the most
/// frequent state of the machine; launches of other states are never pooled with them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverLaunches {
    /// Median time of one leg in each launch that measured the row, in nanoseconds, in the order of launches.
    pub medians_ns: Vec<f64>,
    /// Figure of each state of the machine that the launches met, the most frequent first. Empty for a single launch.
    #[serde(default)]
    pub states: Vec<StateFigure>,
    /// Iterations per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub batch: u64,
    /// OMB's mean, minimum and maximum over ranks: medians over launches.
    #[serde(default, rename = "across_ranks", skip_serializing_if = "Option::is_none")]
    pub across: Option<AcrossRanks>,
    /// Time from the start of the first launch to the end of the last one, in seconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub elapsed_s: Option<f64>,
    /// What earlier runs say about the next one; `None` if none were given.
    #[serde(default, rename = "between_runs", skip_serializing_if = "Option::is_none")]
    pub between: Option<BetweenRuns>,
    /// Single iterations of the launch, for percentiles over several launches. Empty for several launches, and not in result files, whose
    /// samples give them.
    #[serde(skip)]
    pub singles: SingleTimes,
}

/// Times of one leg in the single iterations of a launch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SingleTimes {
    /// Each distinct time in nanoseconds with its number of iterations, ascending.
    pub counts: Vec<(f64, u32)>,
    /// Least percentile in nanoseconds that readings of the clock do not hide.
    pub least_ns: f64,
    /// Step of the clock per leg, in nanoseconds.
    pub step_ns: f64,
}

impl SingleTimes {
    /// Returns the number of iterations.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

/// What earlier runs of the same case, setup and state of the machine say.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BetweenRuns {
    /// Number of these runs.
    pub runs: usize,
    /// Interval of 95 % for the headline of the next run, in nanoseconds; `None` for fewer than 3 runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ns: Option<[f64; 2]>,
    /// Interval of 95 % for the level of the machine around the headline of this run, in nanoseconds; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_ns: Option<[f64; 2]>,
    /// Runs whose headline lies in the interval that the others give, and runs for which there is one.
    pub inside: [usize; 2],
}

/// Figure of the launches in one state of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateFigure {
    /// Places of its launches in [`OverLaunches::medians_ns`], ascending.
    pub launches: Vec<usize>,
    /// Median of their medians, in nanoseconds per leg.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub median_ns: f64,
    /// Low and high end of the interval within the run, in nanoseconds per leg; `None` for a single launch.
    #[serde(default, rename = "within_run_ns", skip_serializing_if = "Option::is_none")]
    pub ends_ns: Option<[f64; 2]>,
    /// Probability that the order statistics behind the interval contain the median of independent launches.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub coverage: f64,
    /// Time that a cache line takes between two cores in this state, in nanoseconds; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_to_core_ns: Option<f64>,
}

impl OverLaunches {
    /// Returns the launches of one state, of which the median and its interval are known.
    pub fn of_one_state(
        medians_ns: Vec<f64>,
        median_ns: f64,
        ends_ns: Option<[f64; 2]>,
        coverage: f64,
    ) -> Self {
        let launches = (0..medians_ns.len()).collect();
        let state = StateFigure { launches, median_ns, ends_ns, coverage, core_to_core_ns: None };
        OverLaunches { medians_ns, states: vec![state], batch: 1, ..OverLaunches::default() }
    }

    /// Returns the number of launches behind the headline: those of the most frequent state.
    pub fn in_state(&self) -> usize {
        self.states.first().map_or(self.medians_ns.len(), |state| state.launches.len())
    }

    /// Returns the coverage of the interval of the headline; 0 for a single launch.
    pub fn coverage(&self) -> f64 {
        self.states.first().map_or(0.0, |state| state.coverage)
    }

    /// Returns whether the interval of the headline is the range of its launches, whose number is below 9.
    pub fn is_range(&self) -> bool {
        self.in_state() < 9
    }

    /// Returns the medians of the launches behind the headline, in nanoseconds.
    pub fn medians_in_state(&self) -> Vec<f64> {
        match self.states.first() {
            Some(state) => state.launches.iter().filter_map(|at| self.medians_ns.get(*at).copied()).collect(),
            None => self.medians_ns.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
