//! Encoding of records.

use std::collections::BTreeMap;

use super::{
    super::record::{Launched, Record, RunOutcome, SCHEMA},
    line::*,
};
use crate::{
    conclusion::{Conclusion, Sentence, SlowPart, VerdictRecord},
    estimate::Ending,
};
use ombx_core::{
    benchmark::{
        Aggregation, BusTraffic, Figure, Metric, Work,
        payload::{Check, Mismatch},
    },
    fact::{Fact, Facts, HostFacts},
    measure::phases::Phases,
    result::{
        self, AcrossRanks, BetweenRuns, Level, Mark, Measurement, OverLaunches, Rate, RoundTrips, Run,
        Samples, StateFigure,
    },
    stats::Summary,
    team::Place,
};

/// Returns a record as one line without its end. Returns an error for a row that no reader would accept.
pub(in crate::file) fn to_json(record: &Record) -> Result<Vec<u8>, String> {
    let line = match record {
        Record::Run(run) => Line::Run(Box::new(run_line(run))),
        Record::Launch(row) => return row_to_json(row, RowKind::Launch),
        Record::Case(row) => return row_to_json(row, RowKind::Case),
        Record::Verdict(verdict) => Line::Verdict(verdict_line(verdict)),
        Record::Launched(launched) => Line::Launched(launched_line(*launched)),
        Record::End(outcome, tally) => Line::End(EndLine {
            outcome: match outcome {
                RunOutcome::Complete => EndOutcome::Complete,
                RunOutcome::Interrupted => EndOutcome::Interrupted,
                RunOutcome::Broken => EndOutcome::Broken,
            },
            cases: tally.cases,
            skipped: tally.skipped,
            failed: tally.failed,
            corrupt: tally.corrupt,
        }),
    };
    serde_json::to_vec(&line).map_err(|e| e.to_string())
}

fn launched_line(Launched { core_to_core_ns, elapsed_s, ended }: Launched) -> LaunchedLine {
    let why = |why| match why {
        Ending::Precise => EndingLine::Precise,
        Ending::Most => EndingLine::Most,
        Ending::Enough => EndingLine::Enough,
        Ending::Budget => EndingLine::Budget,
        Ending::Fixed => EndingLine::Fixed,
    };
    let ended = ended.map(|ended| EndedLine {
        why: why(ended.why),
        precision: ended.precision,
        is_asked: ended.is_asked,
    });
    LaunchedLine { core_to_core_ns, elapsed_s, ended }
}

fn verdict_line(verdict: &VerdictRecord) -> VerdictLine {
    let conclusion = |conclusion| match conclusion {
        Conclusion::Clear => ConclusionLine::Clear,
        Conclusion::Slow => ConclusionLine::Slow,
        Conclusion::None => ConclusionLine::None,
    };
    let sentence = |sentence: &Sentence| SentenceLine {
        conclusion: conclusion(sentence.conclusion),
        text: sentence.text.clone(),
        evidence: sentence.evidence.clone(),
    };
    let slow = |slow: SlowPart| {
        let SlowPart { part, name, hosts, ranks, factor, bytes } = slow;
        SlowLine { part, name, hosts, ranks, factor, bytes }
    };
    VerdictLine {
        conclusion: conclusion(verdict.conclusion),
        sentences: verdict.sentences.iter().map(sentence).collect(),
        slow: verdict.slow.iter().cloned().map(slow).collect(),
        nameable: verdict
            .nameable
            .iter()
            .map(|(bytes, factor)| NameableLine { bytes: *bytes, factor: *factor })
            .collect(),
    }
}

/// Which record a row becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::file) enum RowKind {
    /// Row of one of several launches.
    Launch,
    /// Row over all launches, or of the only one.
    Case,
}

/// Returns the line of a row without copying its samples.
pub(in crate::file) fn row_to_json(row: &Measurement, kind: RowKind) -> Result<Vec<u8>, String> {
    let line = Box::new(case_line(row));
    line.validate().map_err(|why| format!("{}: {why}", row.key))?;
    let line = match kind {
        RowKind::Launch => Line::Launch(line),
        RowKind::Case => Line::Case(line),
    };
    serde_json::to_vec(&line).map_err(|e| e.to_string())
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
        schema: Schema { name: SCHEMA.0.into(), major: SCHEMA.1.into(), minor: SCHEMA.2.into() },
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
        software: facts_line(&run.software),
        hosts: run.hosts.iter().map(hosts_line).collect(),
    }
}

fn hosts_line(HostFacts { hosts, facts }: &HostFacts) -> HostsLine {
    HostsLine { hosts: hosts.clone(), facts: facts_line(facts) }
}

fn facts_line(facts: &Facts) -> BTreeMap<String, FactLine> {
    let line = |fact: &Fact| match fact {
        Fact::Known(value) => FactLine::Known(value.clone()),
        Fact::Unknown(reason) => FactLine::Unknown { unknown: reason.clone() },
    };
    facts.iter().map(|(name, fact)| (name.clone(), line(fact))).collect()
}

fn case_line(row: &Measurement) -> CaseLine<'_> {
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
        bus: row.bus.map(|BusTraffic { bytes, factor }| BusLine { bytes, factor }),
        work: row.work.map(|Work { bytes, ops, legs }| WorkLine { bytes, ops, legs }),
        across: match row.aggregation {
            Aggregation::Origin => AcrossLine::Origin,
            Aggregation::Pairs => AcrossLine::Pairs,
            Aggregation::Slowest => AcrossLine::Slowest,
            Aggregation::Global => AcrossLine::Global,
        },
        outcome,
        reason,
        check,
        checked: row.checked,
        mismatch,
        samples: row.samples.iter().map(samples_line).collect(),
        tail: row.tail.iter().map(samples_line).collect(),
        summary: row.summary.as_ref().map(|s| summary_line(row, s)),
        figures: row.figures.iter().map(|(name, figure)| (name.clone(), figure_line(figure))).collect(),
        trust: row
            .trust
            .iter()
            .cloned()
            .map(|Mark { level, code, short, advice, effect }| MarkLine {
                level: level_line(level),
                code,
                short,
                advice,
                effect: effect.filter(|effect| effect.is_finite()),
            })
            .collect(),
        phases_ns: row.phases.map(phases_line),
        launches: row.launches.as_ref().map(launches_line),
    }
}

fn launches_line(over: &OverLaunches) -> LaunchesLine {
    let OverLaunches { medians_ns, states, batch, across, elapsed_s, between } = over;
    let state = |state: &StateFigure| StateLine {
        launches: state.launches.clone(),
        median_ns: state.median_ns,
        within_run_ns: state.ends_ns,
        coverage: state.coverage,
        core_to_core_ns: state.core_to_core_ns,
    };
    LaunchesLine {
        medians_ns: medians_ns.clone(),
        states: states.iter().map(state).collect(),
        batch: *batch,
        across_ranks: across.map(|AcrossRanks { mean, min, max }| AcrossRanksLine {
            mean_ns: mean,
            min_ns: min,
            max_ns: max,
        }),
        elapsed_s: *elapsed_s,
        between_runs: between.map(|BetweenRuns { runs, next_ns, level_ns, inside }| BetweenRunsLine {
            runs,
            next_ns,
            level_ns,
            inside,
        }),
    }
}

fn level_line(level: Level) -> LevelLine {
    match level {
        Level::Note => LevelLine::Note,
        Level::Caution => LevelLine::Caution,
        Level::Invalid => LevelLine::Invalid,
    }
}

fn phases_line(phases: Phases) -> PhasesLine {
    let Phases { open_ns, fill_ns, warm_up_ns, sample_ns, decide_ns, verify_ns, close_ns } = phases;
    PhasesLine {
        open: open_ns,
        fill: fill_ns,
        warm_up: warm_up_ns,
        sample: sample_ns,
        decide: decide_ns,
        verify: verify_ns,
        close: close_ns,
    }
}

fn figure_line(figure: &Figure) -> FigureLine {
    match figure {
        Figure::Value(x) => FigureLine::Value(*x),
        Figure::Unresolved(why) => FigureLine::Unresolved { unresolved: why.clone() },
    }
}

fn samples_line(samples: &Samples) -> SamplesLine<'_> {
    let Samples { rank, thread, batch, elapsed_ns, started_ns, late, round_trips } = samples;
    let round_trips = round_trips.as_ref().map(|RoundTrips { halves, batch, elapsed_ns }| RoundTripsLine {
        halves: *halves,
        batch: *batch,
        elapsed_ns: elapsed_ns.into(),
    });
    SamplesLine {
        rank: *rank,
        thread: *thread,
        batch: *batch,
        elapsed_ns: elapsed_ns.into(),
        started_ns: started_ns.into(),
        late: late.into(),
        round_trips,
    }
}

fn summary_line(row: &Measurement, s: &Summary) -> SummaryLine {
    SummaryLine {
        n: s.n,
        median_ns: s.median,
        ci95_ns: s.ci95,
        min_ns: s.min,
        mean_ns: s.mean,
        max_ns: s.max,
        mad_ns: s.mad,
        tail_n: s.tail_n,
        p95_ns: s.p95.map(|p| p.value),
        p95_ci95_ns: s.p95.and_then(|p| p.ci95),
        p99_ns: s.p99.map(|p| p.value),
        p99_ci95_ns: s.p99.and_then(|p| p.ci95),
        p999_ns: s.p999.map(|p| p.value),
        p999_ci95_ns: s.p999.and_then(|p| p.ci95),
        lag1: s.lag1,
        bimodal: s.bimodal,
        mb_per_s: row.mb_per_s().and_then(rate_line),
        messages_per_s: row.messages_per_s().and_then(rate_line),
        algorithm_mb_per_s: row.algorithm_mb_per_s().and_then(rate_line),
        bus_mb_per_s: row.bus_mb_per_s().and_then(rate_line),
    }
}

/// Returns a rate, or `None` if it is infinite: JSON has no infinity.
fn rate_line(Rate { median, ci95 }: Rate) -> Option<RateLine> {
    let ci95 = ci95.filter(|ends| ends.iter().all(|x| x.is_finite()));
    median.is_finite().then_some(RateLine { median, ci95 })
}
