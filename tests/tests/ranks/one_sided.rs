//! One-sided benchmarks: every synchronisation with every window, verified.

use std::collections::BTreeSet;

use ombx_core::{payload::Check, result::Outcome, wire::RunWithRows};

use crate::{Kept, measured};

const SYNCS: [&str; 7] = ["pscw", "fence", "lock", "lock_exclusive", "lock_all", "flush", "flush_local"];
const WINDOWS: [&str; 4] = ["allocate", "create", "dynamic", "shared"];
const SIZES: [u64; 3] = [1, 8, 65536];
const PUT_AND_GET: &str = "rma.put_latency rma.put_bw rma.get_latency rma.get_bw";

fn every_combination(bench: &str) -> RunWithRows {
    let run = measured(&format!("{bench} --sync all --win all --sizes 1,8,64K --max-time 20ms -n 2"));
    let expected: BTreeSet<_> = SYNCS
        .iter()
        .flat_map(|sync| WINDOWS.iter().flat_map(move |win| SIZES.map(|bytes| (*sync, *win, bytes))))
        .collect();
    let found: BTreeSet<_> = run
        .rows
        .iter()
        .map(|row| (row.axes["sync"].as_str(), row.axes["win"].as_str(), row.bytes.unwrap()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(run.rows.len(), SYNCS.len() * WINDOWS.len() * SIZES.len(), "each combination once");
    run
}

/// Active-target synchronisation has a ping and a pong, passive-target one access.
fn legs_of_latency(sync: &str) -> u64 {
    if matches!(sync, "pscw" | "fence") { 2 } else { 1 }
}

fn assert_latency(run: &RunWithRows) {
    for row in &run.rows {
        let (work, legs) = (row.work.unwrap(), legs_of_latency(&row.axes["sync"]));
        assert_eq!((work.legs, work.ops), (legs, legs), "{}", row.key);
        assert_eq!(work.bytes, legs * row.bytes.unwrap(), "{}", row.key);
        assert_eq!((row.mb_per_s(), row.depth), (None, None), "{}", row.key);
    }
}

fn assert_bandwidth(run: &RunWithRows) {
    for row in &run.rows {
        let (work, bytes) = (row.work.unwrap(), 64 * row.bytes.unwrap());
        assert_eq!((work.legs, work.ops, work.bytes), (1, 64, bytes), "{}", row.key);
        assert_eq!(row.depth, Some(64), "{}", row.key);
        let median = row.summary.as_ref().unwrap().median;
        let rate = row.mb_per_s().unwrap().median;
        assert!((rate / (bytes as f64 / median * 1e3) - 1.0).abs() < 1e-9, "{}: {rate}", row.key);
    }
}

#[test]
fn put_latency_in_every_way() {
    assert_latency(&every_combination("rma.put_latency"));
}

#[test]
fn get_latency_in_every_way() {
    assert_latency(&every_combination("rma.get_latency"));
}

#[test]
fn put_bw_in_every_way() {
    assert_bandwidth(&every_combination("rma.put_bw"));
}

#[test]
fn get_bw_in_every_way() {
    assert_bandwidth(&every_combination("rma.get_bw"));
}

/// Sizes at which libraries change protocol, odd ones, and none at all.
#[test]
fn awkward_sizes_and_depths() {
    let run = measured(&format!(
        "{PUT_AND_GET} --sizes 0,3,63,65,4097,1000003 --window 3 --max-time 10ms --sync lock,fence"
    ));
    assert_eq!(run.rows.len(), 4 * 6 * 2);
    let deep = measured("rma.put_bw rma.get_bw --sizes 1,4K --window 1000 --max-time 10ms --sync flush");
    assert!(deep.rows.iter().all(|row| row.depth == Some(1000) && row.work.unwrap().ops == 1000));
}

/// Every operation in every way; what cannot be run says why, and is one of the known few.
#[test]
fn everything_runs_and_is_verified_or_says_why_not() {
    let kept = Kept::new();
    let options =
        "rma.* --sync all --win all --sizes 8 --iterations 30 --window 8 --allow-skips --format csv";
    let done = kept.job(options).run().expect(0);
    let run = kept.run();
    assert!(run.rows.len() > 300, "{done}");
    for row in &run.rows {
        match &row.outcome {
            Outcome::Ok => assert_eq!(row.check, Check::Passed, "{}", row.key),
            Outcome::Failed(why) => panic!("{}: {why}", row.key),
            Outcome::Skipped(why) => {
                let known = row.bench.ends_with("_bibw") || row.bench.starts_with("rma.cas_");
                let request = row.bench.starts_with("rma.rput_") || row.bench.starts_with("rma.rget_");
                assert!(known || request, "{}: {why}", row.key);
                assert!(!why.is_empty(), "{}", row.key);
            }
        }
    }
}

/// The lists above are those of the program.
#[test]
fn the_axes_are_all_covered() {
    let listed = ombx_tests::Job::ombx("list --json rma.put_bw").run().expect(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let axes = listed[0]["axes"].as_array().unwrap();
    let values = |name: &str| axes.iter().find(|axis| axis["name"] == name).unwrap()["values"].clone();
    assert_eq!(values("sync"), serde_json::json!(SYNCS));
    assert_eq!(values("win"), serde_json::json!(WINDOWS));
}
