//! Lines of a file in the form that serde writes. The doc comments are the descriptions of the JSON Schema.

mod end;
mod fact;
mod launches;
mod mark;
mod summary;
mod verdict;
use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

pub(super) use self::{
    end::{EndLine, EndOutcome, EndedLine, EndingLine, LaunchedLine},
    fact::{FactLine, HostsLine},
    launches::{AcrossRanksLine, BetweenRunsLine, LaunchesLine, StateLine},
    mark::{LevelLine, MarkLine},
    summary::{RateLine, SummaryLine},
    verdict::{ConclusionLine, NameableLine, SentenceLine, SlowLine, VerdictLine},
};

/// One line. Each launch is a `run`, its rows (`launch`, or `case` if it is the only launch), an `end`, and `launched` once its ranks have
/// ended; a `case` per row or a `verdict` follows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line<'a> {
    Run(Box<RunLine>),
    Launch(Box<CaseLine<'a>>),
    Case(Box<CaseLine<'a>>),
    End(EndLine),
    Launched(LaunchedLine),
    Verdict(VerdictLine),
}

/// Where, when and how rows were measured.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RunLine {
    pub(super) schema: Schema,
    /// Unique name of the run.
    pub(super) run: String,
    /// Command line.
    pub(super) argv: Vec<String>,
    /// Start in UTC, RFC 3339.
    pub(super) started: String,
    pub(super) ombx: Ombx,
    pub(super) fabric: Fabric,
    /// All ranks in order from 0.
    pub(super) ranks: Vec<RankLine>,
    pub(super) clock: ClockLine,
    /// Resolved options.
    #[serde(default)]
    pub(super) plan: BTreeMap<String, String>,
    /// Environment variables that affect MPI.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Facts about the software, such as `commit`, `compiler` and `transport`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) software: BTreeMap<String, FactLine>,
    /// Facts about the hosts. Hosts with equal facts have one entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hosts: Vec<HostsLine>,
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

/// Program that measured.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Ombx {
    pub(super) version: String,
    /// `release` or `debug`.
    pub(super) profile: String,
}

/// Communication layer between the ranks.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Fabric {
    /// Kind: `mpi` or `sockets`.
    pub(super) name: String,
    /// Name and version as the library reports them.
    pub(super) library: String,
}

/// Placement of a rank.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RankLine {
    pub(super) rank: u32,
    pub(super) host: String,
    /// CPUs that the rank may use, in the form of the kernel: `0-3,8`.
    pub(super) cpus: String,
    /// Number of CPUs of the host that are online.
    pub(super) online: u32,
    /// Frequency governor of the first of these CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) governor: Option<String>,
}

/// Clock of rank 0.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ClockLine {
    /// `tsc` or `monotonic`.
    pub(super) source: String,
    /// Smallest step in nanoseconds.
    pub(super) resolution_ns: u64,
    /// Cost of one reading in nanoseconds.
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
    /// Size of one message. Absent if the benchmark could not choose sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// Operations in flight. Absent if the benchmark does not stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) depth: Option<u32>,
    /// Pairs of ranks that communicate at the same time.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) pairs: u32,
    /// Number of ranks that took part.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) ranks: u32,
    /// Chosen value of each axis.
    #[serde(default)]
    pub(super) axes: BTreeMap<String, String>,
    /// Work of one iteration. Absent if the row was skipped before it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) work: Option<WorkLine>,
    /// Bytes that define the bus bandwidth of a collective operation. Absent if the operation has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bus: Option<BusLine>,
    pub(super) across: AcrossLine,
    pub(super) outcome: CaseOutcome,
    /// Why the row was skipped or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) check: CheckLine,
    /// Number of iterations that were checked, each with a pattern of its own. Absent if unknown.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub(super) checked: u64,
    /// First wrong byte. Present if `check` is `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mismatch: Option<MismatchLine>,
    /// Raw samples of every timed rank.
    #[serde(default)]
    pub(super) samples: Vec<SamplesLine<'a>>,
    /// Raw samples of single iterations, from which the percentiles come. Absent if `samples` are of single iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tail: Vec<SamplesLine<'a>>,
    /// Absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<SummaryLine>,
    /// Other figures of the benchmark. The unit is the end of the name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) figures: BTreeMap<String, FigureLine>,
    /// Marks: reasons why the row may be unreliable.
    #[serde(default)]
    pub(super) trust: Vec<MarkLine>,
    /// Time spent in each phase of the row. Absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) phases_ns: Option<PhasesLine>,
    /// The launches that a `case` summarises. Absent if the row comes from one launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) launches: Option<LaunchesLine>,
}

/// Time of a row on rank 0, divided into consecutive phases, in nanoseconds.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct PhasesLine {
    /// Opening of buffers, windows and threads.
    pub(super) open: u64,
    /// Filling of buffers with the first pattern.
    pub(super) fill: u64,
    /// Warm-up, and calibration of the iterations per sample.
    pub(super) warm_up: u64,
    /// Rounds of samples.
    pub(super) sample: u64,
    /// Work between rounds: gathering of samples, statistics, stop rule.
    pub(super) decide: u64,
    /// Verification of the received data, repeated with a second pattern.
    pub(super) verify: u64,
    /// Closing of buffers, windows and threads.
    pub(super) close: u64,
}

/// Metric of the headline figure.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum MetricLine {
    Latency,
    Bandwidth,
}

/// How the times of ranks combine. `origin`: clock of rank 0. `pairs`, `slowest`: the slowest pair or rank of each
/// sample. `global`: from the start of the first rank to the end of the last rank on a common clock.
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

/// Result of the payload check.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckLine {
    Passed,
    Failed,
    Unsupported,
    Off,
}

/// First wrong byte.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct MismatchLine {
    /// Receiving rank.
    pub(super) rank: u32,
    /// Message within the window of messages, from 0.
    pub(super) slot: u64,
    /// Byte within the message, from 0.
    pub(super) byte: u64,
    pub(super) expected: u8,
    pub(super) actual: u8,
}

/// Work of one iteration.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WorkLine {
    /// Payload bytes of all operations, directions and pairs.
    pub(super) bytes: u64,
    /// Number of operations.
    pub(super) ops: u64,
    /// Number of equal legs in sequence: 2 in a ping-pong.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) legs: u64,
}

/// What defines the algorithm and bus bandwidth of a collective operation.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct BusLine {
    /// Bytes of the largest buffer of a rank.
    pub(super) bytes: u64,
    /// Bus bandwidth in multiples of the algorithm bandwidth.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) factor: f64,
}

/// Raw samples of one rank or one thread.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct SamplesLine<'a> {
    pub(super) rank: u32,
    /// Thread of the rank, from 0. Absent for the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) thread: u32,
    /// Iterations per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) batch: u64,
    /// Time of each batch in nanoseconds, in the order of measurement. If `across` is `global`: from the start of the
    /// first rank in that batch to the end of this rank.
    pub(super) elapsed_ns: Cow<'a, [u64]>,
    /// Of several pairs: time in nanoseconds from the first start of each batch, of all timed ranks with the same clock, to the
    /// start of this rank.
    #[serde(default, skip_serializing_if = "<[u64]>::is_empty")]
    pub(super) started_ns: Cow<'a, [u64]>,
    /// Samples, from 0, that this rank started after the agreed time.
    #[serde(default, skip_serializing_if = "<[u64]>::is_empty")]
    pub(super) late: Cow<'a, [u64]>,
    /// Round trips measured in alternation with the samples. A part of them is subtracted from each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) round_trips: Option<RoundTripsLine<'a>>,
}

/// Round trips of empty messages, measured in alternation with samples that contain such a message.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RoundTripsLine<'a> {
    /// Number of half round trips to subtract from a sample: 0, 1 or 2.
    #[cfg_attr(feature = "schema", schemars(range(max = 2)))]
    pub(super) halves: u64,
    /// Round trips per sample.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) batch: u64,
    /// Time of each batch in nanoseconds, in the order of measurement.
    pub(super) elapsed_ns: Cow<'a, [u64]>,
}

/// Number, or the reason why there is none.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum FigureLine {
    Value(f64),
    Unresolved { unresolved: String },
}

fn is_unknown(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn one() -> u32 {
    1
}
