//! The lines of a file as serde writes them; their comments are the descriptions of the JSON Schema.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

/// One line: `run` first, a `case` for every row as it is measured, `end` last.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line<'a> {
    Run(Box<RunLine>),
    Case(Box<CaseLine<'a>>),
    End(EndLine),
}

/// Where, when and how rows were measured.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RunLine {
    pub(super) schema: Schema,
    /// Name of the run, unlike that of any other.
    pub(super) run: String,
    /// Command line.
    pub(super) argv: Vec<String>,
    /// Start in UTC, RFC 3339.
    pub(super) started: String,
    pub(super) ombx: Ombx,
    pub(super) fabric: Fabric,
    /// Every rank, in order from 0.
    pub(super) ranks: Vec<RankLine>,
    pub(super) clock: ClockLine,
    /// Resolved options.
    #[serde(default)]
    pub(super) plan: BTreeMap<String, String>,
    /// Environment variables that change how MPI communicates.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

/// Version of the format.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Schema {
    /// `ombx.result`.
    pub(super) name: String,
    /// Readers of another major version cannot read the file.
    pub(super) major: u64,
    /// Counts additions that readers may ignore.
    #[serde(default)]
    pub(super) minor: u64,
}

/// The program that measured.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Ombx {
    pub(super) version: String,
    /// `release` or `debug`.
    pub(super) profile: String,
}

/// What connects the ranks.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Fabric {
    /// Kind, such as `mpi`.
    pub(super) name: String,
    /// Library and version in its own words.
    pub(super) library: String,
}

/// Where a rank runs.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RankLine {
    pub(super) rank: u32,
    pub(super) host: String,
    /// CPUs that it may use, as the kernel lists them: `0-3,8`.
    pub(super) cpus: String,
    /// CPUs of the host that are online.
    #[serde(default = "one")]
    pub(super) online: u32,
    /// Frequency governor of its first CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) governor: Option<String>,
}

/// The clock of rank 0.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ClockLine {
    /// `tsc` or `monotonic`.
    pub(super) source: String,
    /// Smallest step, in nanoseconds.
    pub(super) resolution_ns: u64,
    /// Cost of one reading, in nanoseconds.
    pub(super) overhead_ns: u64,
}

/// One row.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct CaseLine<'a> {
    /// Benchmark.
    pub(super) bench: String,
    /// Stable name of the row: benchmark, axes, size and depth.
    pub(super) key: String,
    pub(super) metric: MetricLine,
    /// Size of one message; absent where no size could be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// Operations in flight; absent where the benchmark does not stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) depth: Option<u32>,
    /// Pairs of ranks at the same time.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) pairs: u32,
    /// Ranks that took part.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) ranks: u32,
    /// Chosen values, axis by axis.
    #[serde(default)]
    pub(super) axes: BTreeMap<String, String>,
    /// Absent where the row was skipped before it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) work: Option<WorkLine>,
    pub(super) across: AcrossLine,
    pub(super) outcome: CaseOutcome,
    /// Why it was skipped or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) check: CheckLine,
    /// The first wrong byte; present where `check` is `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mismatch: Option<MismatchLine>,
    /// Raw samples of every rank whose clock counts.
    #[serde(default)]
    pub(super) samples: Vec<SamplesLine<'a>>,
    /// Absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<SummaryLine>,
    /// What the benchmark tells beside times; the end of a name is the unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) figures: BTreeMap<String, FigureLine>,
    /// What could have spoiled the row; empty when all is well.
    #[serde(default)]
    pub(super) trust: Vec<NoticeLine>,
    /// Where the time of the row went; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) phases_ns: Option<PhasesLine>,
}

/// The time of a row on rank 0 from its beginning to its end, in parts that follow one another, in nanoseconds.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct PhasesLine {
    /// Opening buffers, windows, threads.
    pub(super) open: u64,
    /// Filling buffers with the first pattern.
    pub(super) fill: u64,
    /// Warming up, and finding how many iterations make a sample.
    pub(super) warm_up: u64,
    /// Rounds of samples.
    pub(super) sample: u64,
    /// Between rounds: gathering, summarising, deciding whether there are enough.
    pub(super) decide: u64,
    /// Comparing what arrived, and the same for a second pattern.
    pub(super) verify: u64,
    /// Closing what was opened.
    pub(super) close: u64,
}

/// What the headline is.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum MetricLine {
    Latency,
    Bandwidth,
}

/// How the times of ranks combine: rank 0's clock, for each sample the slowest pair or rank, or the time from the first
/// rank's start to the last rank's end on one clock for all.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum AcrossLine {
    Origin,
    Pairs,
    Slowest,
    Global,
}

/// How the row ended.
#[derive(Serialize, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum CaseOutcome {
    Ok,
    Skipped,
    Failed,
}

/// What was found of the payload.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckLine {
    Passed,
    Failed,
    Unsupported,
    Off,
}

/// The first wrong byte.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct MismatchLine {
    /// Where the data arrived.
    pub(super) rank: u32,
    /// Message of the window, from 0.
    pub(super) slot: u64,
    /// Byte of the message, from 0.
    pub(super) byte: u64,
    pub(super) expected: u8,
    pub(super) actual: u8,
}

/// What one iteration does.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WorkLine {
    /// Payload bytes over all operations, directions and pairs.
    pub(super) bytes: u64,
    /// Operations.
    pub(super) ops: u64,
    /// Equal legs one after the other: 2 in a ping-pong.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) legs: u64,
}

/// Raw samples of one rank, or of one thread of it.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SamplesLine<'a> {
    pub(super) rank: u32,
    /// Side thread of the rank, from 0; absent where it is the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) thread: u32,
    /// Iterations in each sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) batch: u64,
    /// Time of each batch in nanoseconds, in the order in which they ran; where `across` is `global`, from the first rank's
    /// start of that batch to this rank's end.
    pub(super) elapsed_ns: Cow<'a, [u64]>,
    /// Samples, from 0, that this rank started after the time that was agreed on.
    #[serde(default, skip_serializing_if = "<[u64]>::is_empty")]
    pub(super) late: Cow<'a, [u64]>,
    /// Round trips measured in turn with the samples, of which a part is subtracted from each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) round_trips: Option<RoundTripsLine<'a>>,
}

/// Round trips of empty messages, measured in turn with samples that contain such a message.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RoundTripsLine<'a> {
    /// How many halves of the median round trip are subtracted from a sample: 0, 1 or 2.
    #[cfg_attr(feature = "schema", schemars(range(max = 2)))]
    pub(super) halves: u64,
    /// Round trips in each of these samples.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) batch: u64,
    /// Time of each batch in nanoseconds, in the order in which they ran.
    pub(super) elapsed_ns: Cow<'a, [u64]>,
}

/// Of the time of one leg of one iteration, in nanoseconds, combined over ranks as `across` says.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SummaryLine {
    /// Samples.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) n: usize,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(super) median_ns: f64,
    /// Distribution-free 95 % interval of the median, low and high; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ci95_ns: Option<[f64; 2]>,
    /// Samples in each block whose medians the interval was computed from; 1 where samples are independent.
    #[serde(default = "one_sample")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) block: usize,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(super) min_ns: f64,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(super) mean_ns: f64,
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(super) max_ns: f64,
    /// Median absolute deviation from the median.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0)))]
    pub(super) mad_ns: f64,
    /// 95th percentile; absent below 72 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p95_ns: Option<f64>,
    /// 99th percentile; absent below 368 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p99_ns: Option<f64>,
    /// 99.9th percentile; absent below 3688 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) p999_ns: Option<f64>,
    /// Lag-1 autocorrelation of the samples.
    pub(super) lag1: f64,
    /// Whether samples fall into two groups.
    #[serde(default)]
    pub(super) bimodal: bool,
    /// 10^6 bytes per second, derived from the times above; absent where the metric is latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mb_per_s: Option<RateLine>,
    /// Operations per second, derived from the times above; absent where the metric is latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) messages_per_s: Option<RateLine>,
}

/// A rate at the median time, and at the ends of its interval.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RateLine {
    pub(super) median: f64,
    /// Low and high.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ci95: Option<[f64; 2]>,
}

/// A number, or why there is none.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum FigureLine {
    Value(f64),
    Unresolved { unresolved: String },
}

/// One reason for doubt.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct NoticeLine {
    /// Stable word for programs.
    pub(super) code: String,
    /// For a table's column.
    pub(super) short: String,
    /// What it means and what to do.
    pub(super) advice: String,
}

/// How the run ended, and its rows.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct EndLine {
    pub(super) outcome: EndOutcome,
    /// Rows.
    pub(super) cases: u64,
    /// Of them skipped.
    pub(super) skipped: u64,
    /// Of them failed, other than by payload.
    pub(super) failed: u64,
    /// Of them with a wrong payload.
    #[serde(default)]
    pub(super) corrupt: u64,
}

/// `complete`: every case ran or was skipped; `interrupted`: by a signal; `broken`: by a rank, launcher or connection.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum EndOutcome {
    Complete,
    Interrupted,
    Broken,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn one() -> u32 {
    1
}

fn one_sample() -> usize {
    1
}
