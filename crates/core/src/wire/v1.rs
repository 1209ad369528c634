//! Version 1 of the result format: its types are private, so that nothing else depends on how it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Outcome, ReadError, Record};
use crate::{
    kernel::{Metric, Work},
    layout::Across,
    payload::{Check, Mismatch},
    result::{self, ClockFacts, Measurement, Rate, Run, Samples, Tally},
    stats::Summary,
    team::Place,
    trust::Notice,
    unit::Rank,
};

pub(super) const MAJOR: u32 = 1;
pub(super) const MINOR: u32 = 0;

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Run(RunLine),
    Case(Box<CaseLine>),
    End(EndLine),
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunLine {
    schema: Schema,
    run: String,
    argv: Vec<String>,
    started: String,
    ombx: Ombx,
    fabric: Fabric,
    ranks: Vec<RankLine>,
    clock: ClockLine,
    #[serde(default)]
    plan: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Schema {
    name: String,
    major: u64,
    minor: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Ombx {
    version: String,
    profile: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Fabric {
    name: String,
    library: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RankLine {
    rank: u32,
    host: String,
    cpus: String,
    #[serde(default = "one")]
    online: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    governor: Option<String>,
}

fn one() -> u32 {
    1
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ClockLine {
    source: String,
    resolution_ns: u64,
    overhead_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CaseLine {
    bench: String,
    key: String,
    metric: MetricLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(default = "one")]
    pairs: u32,
    ranks: u32,
    #[serde(default)]
    axes: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<WorkLine>,
    across: AcrossLine,
    outcome: CaseOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    check: CheckLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mismatch: Option<MismatchLine>,
    #[serde(default)]
    samples: Vec<SamplesLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryLine>,
    #[serde(default)]
    trust: Vec<NoticeLine>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum MetricLine {
    Latency,
    Bandwidth,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum AcrossLine {
    Origin,
    Pairs,
    Slowest,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum CaseOutcome {
    Ok,
    Skipped,
    Failed,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum CheckLine {
    Passed,
    Failed,
    Unsupported,
    Off,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MismatchLine {
    rank: u32,
    slot: u64,
    byte: u64,
    expected: u8,
    actual: u8,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkLine {
    bytes: u64,
    ops: u64,
    legs: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SamplesLine {
    rank: u32,
    batch: u64,
    elapsed_ns: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SummaryLine {
    n: usize,
    median_ns: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ci95_ns: Option<[f64; 2]>,
    #[serde(default = "one_sample")]
    block: usize,
    min_ns: f64,
    mean_ns: f64,
    max_ns: f64,
    mad_ns: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p95_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p99_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p999_ns: Option<f64>,
    lag1: f64,
    #[serde(default)]
    bimodal: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mb_per_s: Option<RateLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages_per_s: Option<RateLine>,
}

fn one_sample() -> usize {
    1
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RateLine {
    median: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ci95: Option<[f64; 2]>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NoticeLine {
    code: String,
    short: String,
    advice: String,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EndLine {
    outcome: EndOutcome,
    cases: u64,
    skipped: u64,
    failed: u64,
    #[serde(default)]
    corrupt: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum EndOutcome {
    Complete,
    Interrupted,
    Broken,
}

/// What every line is read as first: its kind decides whether it is known, its schema whether it is ours.
#[derive(Deserialize)]
struct Head {
    kind: String,
    schema: Option<Schema>,
}

pub(super) fn to_json(record: &Record) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&match record {
        Record::Run(run) => Line::Run(run_line(run)),
        Record::Case(row) => Line::Case(Box::new(case_line(row))),
        Record::End(outcome, tally) => Line::End(EndLine {
            outcome: match outcome {
                Outcome::Complete => EndOutcome::Complete,
                Outcome::Interrupted => EndOutcome::Interrupted,
                Outcome::Broken => EndOutcome::Broken,
            },
            cases: tally.cases,
            skipped: tally.skipped,
            failed: tally.failed,
            corrupt: tally.corrupt,
        }),
    })
}

/// Reads a line; `None` for a kind that a later minor version added.
pub(super) fn from_json(text: &str, line: usize) -> Result<Option<Record>, ReadError> {
    let bad = |why: String| ReadError::NotAResult { line, why };
    let head: Head = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if let Some(schema) = &head.schema {
        if schema.name != super::SCHEMA.0 {
            return Err(bad(format!("its schema is {:?}", schema.name)));
        }
        if schema.major != u64::from(MAJOR) {
            return Err(ReadError::Future { found: schema.major, known: MAJOR });
        }
    }
    if !["run", "case", "end"].contains(&head.kind.as_str()) {
        return Ok(None);
    }
    let parsed: Line = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    Ok(Some(match parsed {
        Line::Run(run) => Record::Run(Box::new(run_of(run))),
        Line::Case(case) => Record::Case(Box::new(row_of(*case).map_err(bad)?)),
        Line::End(end) => {
            let outcome = match end.outcome {
                EndOutcome::Complete => Outcome::Complete,
                EndOutcome::Interrupted => Outcome::Interrupted,
                EndOutcome::Broken => Outcome::Broken,
            };
            let EndLine { cases, skipped, failed, corrupt, .. } = end;
            Record::End(outcome, Tally { cases, skipped, failed, corrupt })
        }
    }))
}

fn run_line(run: &Run) -> RunLine {
    let rank = |(rank, p): (u32, &Place)| RankLine {
        rank,
        host: p.host.clone(),
        cpus: p.cpus.clone(),
        online: p.online,
        governor: p.governor.clone(),
    };
    RunLine {
        schema: Schema { name: super::SCHEMA.0.into(), major: MAJOR.into(), minor: MINOR.into() },
        run: run.id.clone(),
        argv: run.argv.clone(),
        started: run.started.clone(),
        ombx: Ombx { version: run.version.clone(), profile: run.profile.clone() },
        fabric: Fabric { name: run.fabric.clone(), library: run.library.clone() },
        ranks: (0..).zip(&run.places).map(rank).collect(),
        clock: ClockLine {
            source: run.clock.source.clone(),
            resolution_ns: run.clock.resolution_ns,
            overhead_ns: run.clock.overhead_ns,
        },
        plan: run.plan.clone(),
        env: run.env.clone(),
    }
}

fn run_of(line: RunLine) -> Run {
    let place = |r: RankLine| Place { host: r.host, cpus: r.cpus, online: r.online, governor: r.governor };
    let ClockLine { source, resolution_ns, overhead_ns } = line.clock;
    Run {
        id: line.run,
        argv: line.argv,
        started: line.started,
        version: line.ombx.version,
        profile: line.ombx.profile,
        fabric: line.fabric.name,
        library: line.fabric.library,
        places: line.ranks.into_iter().map(place).collect(),
        clock: ClockFacts { source, resolution_ns, overhead_ns },
        plan: line.plan,
        env: line.env,
    }
}

fn case_line(row: &Measurement) -> CaseLine {
    let (outcome, reason) = match &row.outcome {
        result::Outcome::Ok => (CaseOutcome::Ok, None),
        result::Outcome::Skipped(why) => (CaseOutcome::Skipped, Some(why.clone())),
        result::Outcome::Failed(why) => (CaseOutcome::Failed, Some(why.clone())),
    };
    let (check, mismatch) = match &row.check {
        Check::Passed => (CheckLine::Passed, None),
        Check::Unsupported => (CheckLine::Unsupported, None),
        Check::Off => (CheckLine::Off, None),
        Check::Failed(m) => {
            let Mismatch { rank, slot, byte, expected, actual } = m.clone();
            (CheckLine::Failed, Some(MismatchLine { rank: rank.0, slot, byte, expected, actual }))
        }
    };
    let rate = |r: Option<Rate>| r.map(|Rate { median, ci95 }| RateLine { median, ci95 });
    CaseLine {
        bench: row.bench.clone(),
        key: row.key.clone(),
        metric: match row.metric {
            Metric::Latency => MetricLine::Latency,
            Metric::Bandwidth => MetricLine::Bandwidth,
        },
        bytes: row.bytes,
        depth: row.depth,
        pairs: row.pairs,
        ranks: row.ranks,
        axes: row.axes.clone(),
        work: row.work.map(|Work { bytes, ops, legs }| WorkLine { bytes, ops, legs }),
        across: match row.across {
            Across::Origin => AcrossLine::Origin,
            Across::Pairs => AcrossLine::Pairs,
            Across::Slowest => AcrossLine::Slowest,
        },
        outcome,
        reason,
        check,
        mismatch,
        samples: row.samples.iter().map(samples_line).collect(),
        summary: row.summary.as_ref().map(|s| SummaryLine {
            n: s.n,
            median_ns: s.median,
            ci95_ns: s.ci95,
            block: s.block,
            min_ns: s.min,
            mean_ns: s.mean,
            max_ns: s.max,
            mad_ns: s.mad,
            p95_ns: s.p95,
            p99_ns: s.p99,
            p999_ns: s.p999,
            lag1: s.lag1,
            bimodal: s.bimodal,
            mb_per_s: rate(row.mb_per_s()),
            messages_per_s: rate(row.messages_per_s()),
        }),
        trust: row.trust.iter().cloned().map(|n| NoticeLine { code: n.code, short: n.short, advice: n.advice }).collect(),
    }
}

fn samples_line(samples: &Samples) -> SamplesLine {
    SamplesLine { rank: samples.rank, batch: samples.batch, elapsed_ns: samples.elapsed_ns.clone() }
}

fn row_of(line: CaseLine) -> Result<Measurement, String> {
    let reason = line.reason.unwrap_or_default();
    let mismatch = line.mismatch.map(|m| Mismatch {
        rank: Rank(m.rank),
        slot: m.slot,
        byte: m.byte,
        expected: m.expected,
        actual: m.actual,
    });
    if line.work.as_ref().is_some_and(|w| w.legs == 0) || line.samples.iter().any(|s| s.batch == 0) {
        return Err("an iteration has no legs or a sample no iterations".into());
    }
    Ok(Measurement {
        bench: line.bench,
        key: line.key,
        metric: match line.metric {
            MetricLine::Latency => Metric::Latency,
            MetricLine::Bandwidth => Metric::Bandwidth,
        },
        bytes: line.bytes,
        depth: line.depth,
        pairs: line.pairs,
        ranks: line.ranks,
        axes: line.axes,
        work: line.work.map(|WorkLine { bytes, ops, legs }| Work { bytes, ops, legs }),
        across: match line.across {
            AcrossLine::Origin => Across::Origin,
            AcrossLine::Pairs => Across::Pairs,
            AcrossLine::Slowest => Across::Slowest,
        },
        outcome: match line.outcome {
            CaseOutcome::Ok => result::Outcome::Ok,
            CaseOutcome::Skipped => result::Outcome::Skipped(reason),
            CaseOutcome::Failed => result::Outcome::Failed(reason),
        },
        check: match (line.check, mismatch) {
            (CheckLine::Passed, _) => Check::Passed,
            (CheckLine::Unsupported, _) => Check::Unsupported,
            (CheckLine::Off, _) => Check::Off,
            (CheckLine::Failed, Some(mismatch)) => Check::Failed(mismatch),
            (CheckLine::Failed, None) => return Err("a failed check does not say where".into()),
        },
        samples: line
            .samples
            .into_iter()
            .map(|SamplesLine { rank, batch, elapsed_ns }| Samples { rank, batch, elapsed_ns })
            .collect(),
        summary: line.summary.map(|s| Summary {
            n: s.n,
            median: s.median_ns,
            ci95: s.ci95_ns,
            block: s.block,
            min: s.min_ns,
            mean: s.mean_ns,
            max: s.max_ns,
            mad: s.mad_ns,
            p95: s.p95_ns,
            p99: s.p99_ns,
            p999: s.p999_ns,
            lag1: s.lag1,
            bimodal: s.bimodal,
        }),
        trust: line
            .trust
            .into_iter()
            .map(|NoticeLine { code, short, advice }| Notice { code, short, advice })
            .collect(),
    })
}

#[cfg(feature = "schema")]
pub(super) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Line).to_value();
    schema["title"] = "One line of an ombx result file, format 1".into();
    schema
}
