//! Two files with known values: of a single launch, and of several.

use std::collections::BTreeMap;

use ombx_estimate::launches::Cases;
use ombx_record::{
    event::Event,
    file,
    result::{Aggregation, Check, Measurement, Metric, Mismatch, Outcome, RunOutcome, Tally, Work},
    stats::{Percentile, Summary},
    unit::Rank,
};

use crate::{json, json_without_checksum, line, read};

/// Handwritten.
const GOLDEN: &str = include_str!("../../../record/tests/golden/one_launch.jsonl");
/// Three launches of two rows, written by a run.
const OF_LAUNCHES: &str = include_str!("../../../record/tests/golden/three_launches.jsonl");

#[test]
fn the_run_is_read() {
    let file = read(GOLDEN).unwrap();
    assert!(!file.cut_off);
    assert_eq!(file.runs.len(), 1);
    let run = &file.runs[0].run;
    assert_eq!(
        (run.id.as_str(), run.started.as_str()),
        ("20260102T030405Z-n01-4242", "2026-01-02T03:04:05Z")
    );
    assert_eq!((run.version.as_str(), run.profile.as_str()), ("0.1.0", "release"));
    assert_eq!((run.fabric.as_str(), run.library.as_str()), ("mpi", "MPICH Version: 4.0.2"));
    assert_eq!(run.argv.len(), 8);
    assert_eq!((run.clock.source.as_str(), run.clock.resolution_ns, run.clock.overhead_ns), ("tsc", 1, 9));
    let hosts: Vec<_> = run.places.iter().map(|p| (p.host.as_str(), p.cpus.as_str(), p.online)).collect();
    assert_eq!(hosts, [("n01", "0", 2), ("n02", "0", 2)]);
    assert_eq!(
        (run.places[0].governor.as_deref(), run.places[1].governor.as_deref()),
        (None, Some("powersave"))
    );
    assert_eq!((run.plan["sync"].as_str(), run.env["UCX_TLS"].as_str()), ("pscw", "rc,sm"));
    let tally = Tally { cases: 4, skipped: 1, failed: 0, corrupt: 1 };
    assert_eq!(file.runs[0].end, Some((RunOutcome::Complete, tally)));
}

#[test]
fn the_latency_row_is_read() {
    let row = read(GOLDEN).unwrap().runs.remove(0).rows.remove(0);
    assert_eq!((row.bench.as_str(), row.key.as_str()), ("p2p.latency", "p2p.latency/bytes=8"));
    assert_eq!((row.metric, row.aggregation), (Metric::Latency, Aggregation::Origin));
    assert_eq!((row.bytes, row.depth, row.pairs, row.ranks), (Some(8), None, 1, 2));
    assert_eq!(row.work, Some(Work { bytes: 16, ops: 2, legs: 2 }));
    assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed));
    assert_eq!((row.samples[0].rank, row.samples[0].batch, row.samples[0].elapsed_ns[9]), (0, 20, 14301));
    let s = row.summary.as_ref().unwrap();
    assert_eq!((s.n, s.median, s.ci95), (10, 357.6875, Some([357.25, 360.05])));
    assert_eq!((s.min, s.max, s.p95, s.p99, s.p999, s.bimodal), (357.2, 399.75, None, None, None, false));
    assert_eq!((row.mb_per_s(), row.messages_per_s()), (None, None));
    assert_eq!(row.trust[0].code.name(), "governor");
}

#[test]
fn the_bandwidth_row_is_read() {
    let row = read(GOLDEN).unwrap().runs.remove(0).rows.remove(1);
    let axes = [("sync", "pscw"), ("win", "allocate")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(row.axes, BTreeMap::from(axes));
    assert_eq!((row.metric, row.depth, row.bytes), (Metric::Bandwidth, Some(64), Some(65536)));
    let s = row.summary.as_ref().unwrap();
    assert_eq!((s.n, s.median, s.ci95), (400, 350_754.5, Some([350_670.0, 350_835.0])));
    let of = |value, ci95| Some(Percentile { value, ci95: Some(ci95) });
    let (p95, p99) = (of(351_461.0, [351_428.0, 352_689.0]), of(354_788.0, [353_134.0, 359_954.0]));
    assert_eq!((s.p95, s.p99, s.p999), (p95, p99, None));
    let rate = row.mb_per_s().unwrap();
    assert!((rate.median - 11957.948).abs() < 1e-3, "{rate:?}");
    assert!((rate.ci95.unwrap()[0] - 11955.204).abs() < 1e-3, "{rate:?}");
    assert!((row.messages_per_s().unwrap().median - 182_463.803).abs() < 1e-3);
    assert!(row.trust.is_empty());
}

#[test]
fn the_rows_without_figures_are_read() {
    let rows = read(GOLDEN).unwrap().runs.remove(0).rows;
    assert_eq!(rows[2].outcome, Outcome::Skipped("needs 4 ranks, has 2; start it with -n 4".into()));
    assert_eq!((rows[2].bytes, rows[2].work, rows[2].aggregation), (None, None, Aggregation::Pairs));
    assert_eq!((&rows[2].check, &rows[2].summary, rows[2].samples.len()), (&Check::Off, &None, 0));
    let mismatch = Mismatch { rank: Rank(0), slot: 3, byte: 63, expected: 0xa5, actual: 0 };
    assert_eq!(rows[3].outcome, Outcome::Failed(format!("data arrived wrong at {mismatch}")));
    assert_eq!(rows[3].check, Check::Failed(mismatch));
    let mut tally = Tally::default();
    rows.iter().for_each(|row| tally.add(row));
    assert_eq!(tally, Tally { cases: 4, skipped: 1, failed: 0, corrupt: 1 });
}

#[test]
fn summaries_are_reproduced() {
    for row in read(GOLDEN).unwrap().runs.remove(0).rows {
        let legs = row.work.map_or(1, |w| w.legs);
        let combined = Measurement::combine(&row.samples, legs);
        let again = match row.batch() {
            Some(1) => Summary::new(&combined),
            _ => Summary::of_batches(&combined),
        };
        assert_eq!(again, row.summary, "{}", row.key);
    }
}

#[test]
fn a_file_of_three_launches_is_read() {
    let file = read(OF_LAUNCHES).unwrap();
    assert!(!file.cut_off);
    let numbers: Vec<&str> = file.runs.iter().map(|run| run.run.plan["launch"].as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3"]);
    for run in &file.runs {
        assert_eq!(run.end, Some((RunOutcome::Complete, Tally { cases: 2, ..Tally::default() })));
        assert_eq!(run.rows.len(), 2);
        for row in &run.rows {
            assert_eq!((row.samples[0].elapsed_ns.len(), &row.launches), (12, &None), "{}", row.key);
            let legs = row.work.map_or(1, |work| work.legs);
            // The interval in the file is wider by a step of the clock.
            let known = |summary: &Summary| (summary.n, summary.median, summary.mean, summary.max);
            let again = Summary::new(&Measurement::combine(&row.samples, legs));
            assert_eq!(again.as_ref().map(known), row.summary.as_ref().map(known), "{}", row.key);
        }
    }
}

#[test]
fn estimates_are_reproduced_from_the_launches() {
    let mut cases = Cases::default();
    read(OF_LAUNCHES).unwrap().runs.iter().for_each(|launch| cases.launch(launch));
    let estimates = cases.groups()[0].estimates();
    let written: Vec<Measurement> = (1..)
        .zip(OF_LAUNCHES.lines())
        .filter_map(|(number, text)| match file::parse(text, number).unwrap().unwrap() {
            Event::Case(row) => Some(row.into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!((written.len(), cases.groups().len()), (2, 1));
    for row in &written {
        let again = estimates.iter().find(|estimate| estimate.key == row.key).unwrap();
        assert_eq!(again, row);
        let over = row.over_launches().unwrap();
        assert_eq!((over.medians_ns.len(), over.coverage()), (3, 0.75));
    }
}

#[test]
fn writing_gives_the_same_lines() {
    for (number, text) in (1..).zip(GOLDEN.lines().chain(OF_LAUNCHES.lines())) {
        let event: Event<'_> = file::parse(text, number).unwrap().unwrap();
        let written = match &event {
            // A `case` with raw samples is the row of the only launch.
            Event::Row(row) if json(text)["kind"] == "case" => line(&Event::Case(row.clone())),
            other => line(other),
        };
        let written = String::from_utf8(written).unwrap();
        assert_eq!(json_without_checksum(&written), json(text), "line {number}");
    }
}
