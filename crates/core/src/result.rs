//! What is kept of a run in memory: provenance, rows with their raw samples, and how it ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    clock::Facts,
    kernel::{Metric, Work},
    layout::Across,
    payload::Check,
    stats::Summary,
    team::Place,
    trust::Notice,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// Whose clock.
    pub rank: u32,
    /// Which thread of the rank; 0 where it has one.
    pub thread: u32,
    /// Iterations in each sample.
    pub batch: u64,
    /// Time of each batch, in the order in which they ran.
    pub elapsed_ns: Vec<u64>,
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
    pub across: Across,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found of the payload.
    pub check: Check,
    /// Raw.
    pub samples: Vec<Samples>,
    /// Of the time of one leg, in nanoseconds, combined over ranks as `across` says.
    pub summary: Option<Summary>,
    /// What could have spoiled it.
    pub trust: Vec<Notice>,
}

/// A rate with its interval, derived from the time of an iteration by division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Per second.
    pub median: f64,
    /// Low and high.
    pub ci95: Option<[f64; 2]>,
}

impl Measurement {
    /// MB/s (10^6 bytes), where bytes move and the metric is one of bandwidth.
    pub fn mb_per_s(&self) -> Option<Rate> {
        let work = self.work.filter(|w| w.bytes > 0)?;
        self.rate(work.bytes as f64 / 1e6)
    }

    /// Messages per second, where the metric is one of bandwidth.
    pub fn messages_per_s(&self) -> Option<Rate> {
        self.rate(self.work?.ops as f64)
    }

    fn rate(&self, per_iteration: f64) -> Option<Rate> {
        let summary = self.summary.as_ref().filter(|s| self.metric == Metric::Bandwidth && s.median > 0.0)?;
        let legs = self.work?.legs as f64;
        let of = |leg_ns: f64| per_iteration / (leg_ns * legs * 1e-9);
        let ci95 = summary.ci95.filter(|[low, _]| *low > 0.0).map(|[low, high]| [of(high), of(low)]);
        Some(Rate { median: of(summary.median), ci95 })
    }

    /// The combined time of one leg, sample by sample, in nanoseconds: the slowest rank or pair of each
    /// sample. Threads of a rank do not iterate in step, so the samples of each count by themselves.
    pub fn combine(samples: &[Samples], legs: u64) -> Vec<f64> {
        let n = samples.iter().map(|s| s.elapsed_ns.len()).min().unwrap_or(0);
        let threads: BTreeSet<u32> = samples.iter().map(|s| s.thread).collect();
        let threads = &threads;
        let leg = |s: &Samples, i: usize| s.elapsed_ns[i] as f64 / (s.batch as f64 * legs as f64);
        let slowest = move |i: usize, thread: &u32| {
            samples.iter().filter(|s| s.thread == *thread).map(|s| leg(s, i)).fold(0.0, f64::max)
        };
        (0..n).flat_map(|i| threads.iter().map(move |thread| slowest(i, thread))).collect()
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
mod tests {
    use super::*;

    fn row(metric: Metric, work: Work, leg_ns: f64) -> Measurement {
        Measurement {
            bench: "x.y".into(),
            key: "x.y/bytes=8".into(),
            metric,
            bytes: Some(8),
            depth: None,
            pairs: 1,
            ranks: 2,
            axes: BTreeMap::new(),
            work: Some(work),
            across: Across::Origin,
            outcome: Outcome::Ok,
            check: Check::Passed,
            samples: vec![],
            summary: Summary::of(&[leg_ns; 10]),
            trust: vec![],
        }
    }

    #[test]
    fn bandwidth_is_bytes_by_the_time_of_an_iteration() {
        let stream = row(Metric::Bandwidth, Work { bytes: 64_000_000, ops: 64, legs: 1 }, 1e9);
        assert!((stream.mb_per_s().unwrap().median - 64.0).abs() < 1e-9);
        assert!((stream.messages_per_s().unwrap().median - 64.0).abs() < 1e-9);
        // A ping-pong of 2 x 1 MB in 2 ms moves 1 MB in each leg of 1 ms.
        let ping = row(Metric::Bandwidth, Work { bytes: 2_000_000, ops: 2, legs: 2 }, 1e6);
        assert!((ping.mb_per_s().unwrap().median - 1000.0).abs() < 1e-9);
        assert_eq!(row(Metric::Latency, Work { bytes: 16, ops: 2, legs: 2 }, 1e3).mb_per_s(), None);
        assert_eq!(row(Metric::Bandwidth, Work { bytes: 0, ops: 64, legs: 1 }, 1e3).mb_per_s(), None);
    }

    #[test]
    fn the_interval_of_a_rate_turns_round() {
        let mut slow = row(Metric::Bandwidth, Work { bytes: 1_000_000, ops: 1, legs: 1 }, 1e9);
        slow.summary.as_mut().unwrap().ci95 = Some([0.5e9, 2e9]);
        assert_eq!(slow.mb_per_s().unwrap().ci95, Some([0.5, 2.0]));
        slow.summary.as_mut().unwrap().ci95 = Some([0.0, 2e9]);
        assert_eq!(slow.mb_per_s().unwrap().ci95, None);
    }

    #[test]
    fn the_slowest_of_each_sample_counts() {
        let of = |rank, batch, elapsed_ns: &[u64]| Samples {
            rank,
            thread: 0,
            batch,
            elapsed_ns: elapsed_ns.to_vec(),
        };
        let both = [of(0, 10, &[100, 300]), of(1, 10, &[200, 100])];
        assert_eq!(Measurement::combine(&both, 1), [20.0, 30.0]);
        assert_eq!(Measurement::combine(&both[..1], 2), [5.0, 15.0]);
        // Threads do not iterate in step: the samples of each count by themselves.
        let threads = [of(0, 10, &[100, 300]), Samples { thread: 1, ..of(0, 10, &[200, 100]) }];
        assert_eq!(Measurement::combine(&threads, 1), [10.0, 20.0, 30.0, 10.0]);
    }

    #[test]
    fn a_wrong_payload_outweighs_everything() {
        let mut tally = Tally { cases: 9, skipped: 1, failed: 1, corrupt: 1 };
        assert_eq!(tally.exit_code(true), 5);
        tally.corrupt = 0;
        assert_eq!(tally.exit_code(true), 4);
        tally.failed = 0;
        assert_eq!((tally.exit_code(true), tally.exit_code(false)), (0, 4));
    }
}
