//! Decoding and validation of lines.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    super::record::{Ended, Launched, ReadError, Record, RunOutcome, SCHEMA},
    line::*,
};
use crate::{
    conclusion::{Conclusion, Sentence, SlowPart, VerdictRecord},
    estimate::Ending,
};
use ombx_core::{
    benchmark::{
        Aggregation, BusTraffic, Figure, Metric, ParameterValue, Work,
        payload::{Check, Mismatch},
    },
    fact::{Fact, Facts, HostFacts},
    measure::phases::Phases,
    result::{
        self, AcrossRanks, BetweenRuns, ClockFacts, Level, Mark, Measurement, OverLaunches, RoundTrips, Run,
        Samples, StateFigure, Tally,
    },
    stats::{Percentile, Summary},
    team::Place,
    two_sided::pattern::LinkPattern,
    unit::Rank,
};

/// First fields of every line: its kind, and its schema if it has one.
#[derive(Deserialize)]
struct Head {
    kind: String,
    schema: Option<Version>,
}

/// Fields that all versions of the schema have.
#[derive(Deserialize)]
struct Version {
    name: String,
    major: u64,
}

/// Decodes a line. Returns `None` for a kind of record that a later minor version added.
pub(in crate::file) fn from_json(text: &str, line: usize) -> Result<Option<Record>, ReadError> {
    let bad = |why: String| ReadError::NotAResult { line, why };
    let head: Head = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if let Some(Version { name, major }) = head.schema {
        if name != SCHEMA.0 {
            return Err(bad(format!("its schema is {name:?}")));
        }
        match major {
            0 => return Err(bad("its schema has version 0, which does not exist".into())),
            found if found > u64::from(SCHEMA.1) => {
                return Err(ReadError::NewerVersion { found, known: SCHEMA.1 });
            }
            _ => {}
        }
    }
    let record = match head.kind.as_str() {
        "run" => body(text).and_then(run_of).map(|run| Record::Run(Box::new(run))),
        "launch" => body(text).and_then(row_of).map(|row| Record::Launch(Box::new(row))),
        "case" => body(text).and_then(row_of).map(|row| match row.launches {
            Some(_) => Record::Case(Box::new(row)),
            None => Record::Launch(Box::new(row)),
        }),
        "end" => body(text).map(end_of),
        "launched" => body(text).and_then(launched_of).map(Record::Launched),
        "verdict" => body(text).map(|line| Record::Verdict(Box::new(verdict_of(line)))),
        _ => return Ok(None),
    };
    record.map(Some).map_err(bad)
}

fn body<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn run_of(line: RunLine) -> Result<Run, String> {
    if let Some((at, _)) = (0..).zip(&line.ranks).find(|(at, r)| *at != r.rank) {
        return Err(format!("rank {at} is missing or out of order"));
    }
    let place = |r: RankLine| Place { host: r.host, cpus: r.cpus, online: r.online, governor: r.governor };
    let ClockLine { source, resolution_ns, overhead_ns } = line.clock;
    Ok(Run {
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
        software: facts_of(line.software),
        hosts: line.hosts.into_iter().map(hosts_of).collect(),
    })
}

fn hosts_of(HostsLine { hosts, facts }: HostsLine) -> HostFacts {
    HostFacts { hosts, facts: facts_of(facts) }
}

fn facts_of(facts: BTreeMap<String, FactLine>) -> Facts {
    let fact = |line| match line {
        FactLine::Known(value) => Fact::Known(value),
        FactLine::Unknown { unknown } => Fact::Unknown(unknown),
    };
    facts.into_iter().map(|(name, line)| (name, fact(line))).collect()
}

fn verdict_of(line: VerdictLine) -> VerdictRecord {
    let conclusion = |line| match line {
        ConclusionLine::Clear => Conclusion::Clear,
        ConclusionLine::Slow => Conclusion::Slow,
        ConclusionLine::None => Conclusion::None,
    };
    let sentence = |line: SentenceLine| Sentence {
        conclusion: conclusion(line.conclusion),
        text: line.text,
        evidence: line.evidence,
    };
    let slow = |SlowLine { part, name, hosts, ranks, factor, bytes }| SlowPart {
        part,
        name,
        hosts,
        ranks,
        factor,
        bytes,
    };
    VerdictRecord {
        conclusion: conclusion(line.conclusion),
        sentences: line.sentences.into_iter().map(sentence).collect(),
        slow: line.slow.into_iter().map(slow).collect(),
        nameable: line.nameable.into_iter().map(|NameableLine { bytes, factor }| (bytes, factor)).collect(),
    }
}

fn end_of(line: EndLine) -> Record {
    let outcome = match line.outcome {
        EndOutcome::Complete => RunOutcome::Complete,
        EndOutcome::Interrupted => RunOutcome::Interrupted,
        EndOutcome::Broken => RunOutcome::Broken,
    };
    let EndLine { cases, skipped, failed, corrupt, .. } = line;
    Record::End(outcome, Tally { cases, skipped, failed, corrupt })
}

fn row_of(mut line: CaseLine<'_>) -> Result<Measurement, String> {
    line.validate()?;
    line.key = current_key(&mut line);
    let reason = line.reason.unwrap_or_default();
    let mismatch = line.mismatch.map(|MismatchLine { rank, slot, byte, expected, actual }| Mismatch {
        rank: Rank(rank),
        slot,
        byte,
        expected,
        actual,
    });
    let metric = match line.metric {
        MetricLine::Latency => Metric::Latency,
        MetricLine::Bandwidth => Metric::Bandwidth,
    };
    Ok(Measurement {
        bytes: line.bytes,
        depth: line.depth,
        pairs: line.pairs,
        axes: line.axes,
        bus: line.bus.map(|BusLine { bytes, factor }| BusTraffic { bytes, factor }),
        work: line.work.map(|WorkLine { bytes, ops, legs }| Work { bytes, ops, legs }),
        aggregation: match line.across {
            AcrossLine::Origin => Aggregation::Origin,
            AcrossLine::Pairs => Aggregation::Pairs,
            AcrossLine::Slowest => Aggregation::Slowest,
            AcrossLine::Global => Aggregation::Global,
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
            (CheckLine::Failed, None) => return Err("a failed check has no mismatch".into()),
        },
        checked: line.checked,
        summary: line
            .summary
            .map(|summary| summary_of(summary, line.samples.iter().map(|s| s.batch).max().unwrap_or(1))),
        samples: line.samples.into_iter().map(samples_of).collect(),
        tail: line.tail.into_iter().map(samples_of).collect(),
        figures: line.figures.into_iter().map(|(name, figure)| (name, figure_of(figure))).collect(),
        trust: line
            .trust
            .into_iter()
            .map(|MarkLine { level, code, short, advice, effect }| Mark {
                level: level_of(level),
                code,
                short,
                advice,
                effect: effect.filter(|effect| effect.is_finite()),
            })
            .collect(),
        phases: line.phases_ns.map(phases_of),
        launches: line.launches.map(launches_of),
        ..Measurement::new(line.bench, line.key, metric, line.ranks)
    })
}

/// Returns the key that this version gives a row, so that rows of earlier files compare. Earlier keys of links name the depth where one
/// message is in flight, which this removes from the row too, and the round of a sweep. Earlier binomial broadcasts are `by=tree`.
fn current_key(line: &mut CaseLine<'_>) -> String {
    let mut key = std::mem::take(&mut line.key);
    let pattern = line.axes.get(LinkPattern::PARAMETER.name);
    if pattern.is_some_and(|pattern| pattern != LinkPattern::Unidirectional.name())
        && let Some(depth) = line.depth.take()
    {
        key = key.replacen(&format!(",depth={depth}"), "", 1);
    }
    if let Some(round) = line.axes.get("round").filter(|_| line.axes.contains_key("from")) {
        key = key.replacen(&format!("round={round},"), "", 1);
    }
    if let Some(by) = line.axes.get_mut("by").filter(|by| *by == "tree") {
        *by = "binomial".into();
        key = key.replacen("by=tree", "by=binomial", 1);
    }
    key
}

fn launches_of(line: LaunchesLine) -> OverLaunches {
    let LaunchesLine { medians_ns, states, batch, across_ranks, elapsed_s, between_runs } = line;
    let state = |line: StateLine| StateFigure {
        launches: line.launches,
        median_ns: line.median_ns,
        ends_ns: line.within_run_ns,
        coverage: line.coverage,
        core_to_core_ns: line.core_to_core_ns,
    };
    let across = across_ranks.map(|AcrossRanksLine { mean_ns, min_ns, max_ns }| AcrossRanks {
        mean: mean_ns,
        min: min_ns,
        max: max_ns,
    });
    let between = between_runs.map(|BetweenRunsLine { runs, next_ns, level_ns, inside }| BetweenRuns {
        runs,
        next_ns,
        level_ns,
        inside,
    });
    let states = states.into_iter().map(state).collect();
    OverLaunches { medians_ns, states, batch, across, elapsed_s, between }
}

fn launched_of(line: LaunchedLine) -> Result<Launched, String> {
    let LaunchedLine { core_to_core_ns, elapsed_s, ended } = line;
    let is_time = |x: f64| x.is_finite() && x >= 0.0;
    let numbers = [Some(elapsed_s), core_to_core_ns, ended.as_ref().map(|ended| ended.precision)];
    if !numbers.into_iter().flatten().all(is_time) {
        return Err("it has a number that is not a time or a precision".into());
    }
    let why = |why| match why {
        EndingLine::Precise => Ending::Precise,
        EndingLine::Most => Ending::Most,
        EndingLine::Enough => Ending::Enough,
        EndingLine::Budget => Ending::Budget,
        EndingLine::Fixed => Ending::Fixed,
    };
    let ended = ended.map(|ended| Ended {
        why: why(ended.why),
        precision: ended.precision,
        is_asked: ended.is_asked,
    });
    Ok(Launched { core_to_core_ns, elapsed_s, ended })
}

fn samples_of(line: SamplesLine<'_>) -> Samples {
    let SamplesLine { rank, thread, batch, elapsed_ns, started_ns, late, round_trips } = line;
    let round_trips = round_trips.map(|RoundTripsLine { halves, batch, elapsed_ns }| RoundTrips {
        halves,
        batch,
        elapsed_ns: elapsed_ns.into_owned(),
    });
    let [elapsed_ns, started_ns, late] = [elapsed_ns, started_ns, late].map(Cow::into_owned);
    Samples { rank, thread, batch, elapsed_ns, started_ns, late, round_trips }
}

fn level_of(line: LevelLine) -> Level {
    match line {
        LevelLine::Note => Level::Note,
        LevelLine::Caution => Level::Caution,
        LevelLine::Invalid => Level::Invalid,
    }
}

fn phases_of(line: PhasesLine) -> Phases {
    let PhasesLine { open, fill, warm_up, sample, decide, verify, close } = line;
    Phases {
        open_ns: open,
        fill_ns: fill,
        warm_up_ns: warm_up,
        sample_ns: sample,
        decide_ns: decide,
        verify_ns: verify,
        close_ns: close,
    }
}

fn figure_of(line: FigureLine) -> Figure {
    match line {
        FigureLine::Value(x) => Figure::Value(x),
        FigureLine::Unresolved { unresolved } => Figure::Unresolved(unresolved),
    }
}

/// Returns a summary. `batch` is the number of iterations per sample. Rates are computed again from the times.
///
/// Percentiles of batches, as files before 2.0 have them, are left out: they are no percentiles of iterations.
fn summary_of(line: SummaryLine, batch: u64) -> Summary {
    let tail_n = line.tail_n.unwrap_or(if batch == 1 { line.n } else { 0 });
    let percentile =
        |value: Option<f64>, ci95| value.filter(|_| tail_n > 0).map(|value| Percentile { value, ci95 });
    Summary {
        n: line.n,
        median: line.median_ns,
        ci95: line.ci95_ns,
        min: line.min_ns,
        mean: line.mean_ns,
        max: line.max_ns,
        mad: line.mad_ns,
        tail_n,
        p95: percentile(line.p95_ns, line.p95_ci95_ns),
        p99: percentile(line.p99_ns, line.p99_ci95_ns),
        p999: percentile(line.p999_ns, line.p999_ci95_ns),
        chosen: Vec::new(),
        lag1: line.lag1,
        bimodal: line.bimodal,
    }
}
