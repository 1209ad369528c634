//! Arbitrary records for property tests.

use std::{borrow::Cow, collections::BTreeMap};

use ombx_record::{
    event::{Event, Round, RoundMark},
    fact::{Fact, Facts, HostFacts},
    result::{
        Aggregation, Check, ClockFacts, Contents, CpuQuota, Ending, Figure, Growth, Level, LoadedFile,
        LoadedFiles, Mark, Measurement, Metric, Mismatch, OtherFiles, Outcome, Phases, Place, RoundTrips,
        Rounds, Run, RunOutcome, Samples, Tally, Work,
    },
    stats::Summary,
    unit::Rank,
};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
};

pub(crate) fn any_record() -> impl Strategy<Value = Event<'static>> {
    prop_oneof![
        any_run().prop_map(|run| Event::Run(Cow::Owned(run))),
        any_row().prop_map(|row| Event::Row(Cow::Owned(row))),
        any_round(),
        any_grown(),
        any_end(),
        any_launched(),
    ]
}

fn any_round() -> impl Strategy<Value = Event<'static>> {
    let link = (any::<u32>(), any::<u32>(), 0.0..1e12f32);
    let bytes = option::of(any::<u64>());
    (vec(link, 1..20), option::of(any::<u32>()), bytes, any_row()).prop_map(|(links, number, bytes, row)| {
        let row = Measurement {
            bytes,
            axes: row.axes,
            work: row.work,
            checked: row.checked,
            ..Measurement::new("links", row.key, row.metric, row.ranks)
        };
        let marks = vec![RoundMark::new(Mark::with_advice("few", "few", "more"), vec![0])];
        Event::Round(Cow::Owned(Round {
            row,
            number,
            from: links.iter().map(|link| link.0).collect(),
            to: links.iter().map(|link| link.1).collect(),
            median_ns: links.iter().map(|link| link.2).collect(),
            marks,
        }))
    })
}

fn any_grown() -> impl Strategy<Value = Event<'static>> {
    let one = (text(), text(), text(), any::<u64>());
    let grown = one.prop_map(|(host, device, counter, by)| Growth { host, device, counter, by });
    vec(grown, 0..4).prop_map(|grown| Event::Grown { grown: Cow::Owned(grown) })
}

fn any_launched() -> impl Strategy<Value = Event<'static>> {
    let why = prop_oneof![
        Just(Ending::Precise),
        Just(Ending::Most),
        Just(Ending::Enough),
        Just(Ending::Budget),
        Just(Ending::Fixed)
    ];
    let ended = option::of((why, 0.0..1.0f64, any::<bool>()));
    (option::of(1e-3..1e9f64), 0.0..1e9f64, ended).prop_map(|(core_to_core_ns, elapsed_s, ended)| {
        let ended =
            ended.map(|(why, precision, is_asked)| ombx_record::result::Ended { why, precision, is_asked });
        Event::Launched(ombx_record::result::Launched { core_to_core_ns, elapsed_s, ended })
    })
}

pub(crate) fn any_end() -> impl Strategy<Value = Event<'static>> {
    let outcome =
        prop_oneof![Just(RunOutcome::Complete), Just(RunOutcome::Interrupted), Just(RunOutcome::Broken)];
    (outcome, any::<[u64; 4]>()).prop_map(|(outcome, [cases, skipped, failed, corrupt])| Event::End {
        outcome,
        tally: Tally { cases, skipped, failed, corrupt },
    })
}

/// Returns text with quotes, control characters, line ends and characters of all scripts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), Just("a \"quoted\"\nline\u{2028}\0".to_owned())]
}

fn texts() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map(text(), text(), 0..4)
}

fn facts() -> impl Strategy<Value = Facts> {
    let fact = prop_oneof![text().prop_map(Fact::Known), text().prop_map(|reason| Fact::Unknown { reason })];
    btree_map(text(), fact, 0..4)
}

fn any_loaded() -> impl Strategy<Value = LoadedFiles> {
    let contents = (any::<u64>(), text()).prop_map(|(bytes, crc32)| Contents { bytes, crc32 });
    let file = (text(), option::of(text()), option::of(contents))
        .prop_map(|(path, build_id, contents)| LoadedFile { path, build_id, contents });
    let others = (any::<u64>(), text()).prop_map(|(count, crc32)| OtherFiles { count, crc32 });
    (vec(file, 1..4), others).prop_map(|(files, others)| LoadedFiles {
        program: files[0].clone(),
        libraries: files[1..].to_vec(),
        preloads: files,
        others,
    })
}

pub(crate) fn any_run() -> impl Strategy<Value = Run> {
    let quota =
        (any::<u32>(), 1..100_000_u64).prop_map(|(quota, period)| CpuQuota::new(quota.into(), period));
    let place = (text(), text(), any::<u32>(), option::of(text()), quota)
        .prop_map(|(host, cpus, online, governor, quota)| Place { host, cpus, online, governor, quota });
    let clock = (text(), any::<u64>(), any::<u64>())
        .prop_map(|(source, resolution_ns, overhead_ns)| ClockFacts { source, resolution_ns, overhead_ns });
    let hosts = (vec(text(), 0..3), facts()).prop_map(|(hosts, facts)| HostFacts { hosts, facts });
    let facts = (facts(), vec(hosts, 0..3), option::of(any_loaded()));
    (vec(text(), 7), vec(text(), 0..3), vec(place, 0..4), clock, texts(), texts(), facts).prop_map(
        |(words, argv, places, clock, plan, env, (software, hosts, loaded))| Run {
            id: words[0].clone(),
            argv,
            started: words[1].clone(),
            version: words[2].clone(),
            profile: words[3].clone(),
            fabric: words[4].clone(),
            library: words[5].clone(),
            places,
            clock,
            plan,
            env,
            software,
            hosts,
            loaded,
            launched: None,
        },
    )
}

fn any_samples() -> impl Strategy<Value = Vec<Samples>> {
    let times = || vec(any::<u64>(), 0..12);
    let round_trips = (0..3u64, 1..=u64::MAX, times()).prop_map(|(halves, batch, elapsed_ns)| RoundTrips {
        halves,
        batch,
        elapsed_ns,
    });
    let starts = prop_oneof![Just(Vec::new()), vec(any::<u64>(), 12)];
    let rounds = (2..=u32::MAX, any::<u64>()).prop_map(|(samples, seed)| Rounds { samples, seed });
    let one = (any::<[u32; 2]>(), 1..=u64::MAX, times(), starts, times(), option::of(round_trips)).prop_map(
        |([rank, thread], batch, elapsed_ns, mut started_ns, late, round_trips)| Samples {
            rank,
            thread,
            batch,
            started_ns: {
                started_ns.truncate(elapsed_ns.len());
                started_ns
            },
            elapsed_ns,
            late,
            round_trips,
            rounds: None,
        },
    );
    // All ranks have the same rounds.
    (vec(one, 0..3), option::of(rounds)).prop_map(|(mut samples, rounds)| {
        samples.iter_mut().for_each(|samples| samples.rounds = rounds);
        samples
    })
}

fn any_ending() -> impl Strategy<Value = (Outcome, Check)> {
    let mismatch = (any::<[u64; 2]>(), any::<u32>(), any::<[u8; 2]>()).prop_map(
        |([slot, byte], rank, [expected, actual])| Mismatch {
            rank: Rank(rank),
            slot,
            byte,
            expected,
            actual,
        },
    );
    let check = prop_oneof![Just(Check::Passed), Just(Check::Unsupported), Just(Check::Off)];
    prop_oneof![
        check.clone().prop_map(|check| (Outcome::Ok, check)),
        (text(), check.clone()).prop_map(|(why, check)| (Outcome::Skipped(why), check)),
        (text(), check).prop_map(|(why, check)| (Outcome::Failed(why), check)),
        (text(), mismatch).prop_map(|(why, mismatch)| (Outcome::Failed(why), Check::Failed(mismatch))),
    ]
}

fn phases_of([open_ns, fill_ns, warm_up_ns, sample_ns, decide_ns, verify_ns, close_ns]: [u64; 7]) -> Phases {
    Phases { open_ns, fill_ns, warm_up_ns, sample_ns, decide_ns, verify_ns, close_ns }
}

pub(crate) fn any_row() -> impl Strategy<Value = Measurement> {
    let shape = (
        prop_oneof![Just(Metric::Latency), Just(Metric::Bandwidth)],
        prop_oneof![
            Just(Aggregation::Origin),
            Just(Aggregation::Pairs),
            Just(Aggregation::Slowest),
            Just(Aggregation::Global)
        ],
        option::of(any::<u64>()),
        option::of(1..=u32::MAX),
        [1..=u32::MAX, 1..=u32::MAX],
        texts(),
        option::of((any::<u64>(), any::<u64>(), 1..=u64::MAX)),
    );
    let notice = (0..3usize, text(), text(), text()).prop_map(|(level, code, short, advice)| Mark {
        level: Level::ALL[level],
        code: code.into(),
        short,
        advice,
        effect: None,
    });
    let times = option::of(vec(0.0..1e15f64, 1..40));
    let figure = prop_oneof![(-1e15..1e15f64).prop_map(Figure::Value), text().prop_map(Figure::Unresolved)];
    let figures = btree_map(text(), figure, 0..3);
    let phases = option::of(any::<[u64; 7]>()).prop_map(|parts| parts.map(phases_of));
    (text(), text(), shape, any_ending(), any_samples(), times, (figures, vec(notice, 0..3), phases))
        .prop_map(
            |(
                bench,
                key,
                (metric, across, bytes, depth, [pairs, ranks], axes, work),
                ending,
                samples,
                times,
                (figures, trust, phases),
            )| {
                let (outcome, check) = ending;
                Measurement {
                    bytes,
                    depth,
                    pairs,
                    axes,
                    work: work.map(|(bytes, ops, legs)| Work { bytes, ops, legs }),
                    aggregation: across,
                    outcome,
                    check,
                    samples,
                    summary: times.and_then(|t| Summary::new(&t)),
                    figures,
                    trust,
                    phases,
                    ..Measurement::new(bench, key, metric, ranks)
                }
            },
        )
}
