//! One-sided benchmarks: every operation with every synchronisation and every window, verified or unavailable for a reason.

use std::collections::{BTreeMap, BTreeSet};

use ombx_core::{
    benchmark::payload::Check,
    result::{Measurement, Outcome},
};
use ombx_tests::{Job, mpi, tell};

use crate::{Kept, assert_plausible, measured};

pub(crate) const SYNCS: [&str; 7] =
    ["pscw", "fence", "lock", "lock_exclusive", "lock_all", "flush", "flush_local"];
pub(crate) const WINDOWS: [&str; 4] = ["allocate", "create", "dynamic", "shared"];

/// Operations on one element, whose sizes are those of integers.
const ON_ONE_ELEMENT: [&str; 2] = ["rma.fop_latency", "rma.cas_latency"];
const ELEMENTS: (&str, &[u64]) = ("4,8", &[4, 8]);
const MESSAGES: (&str, &[u64]) = ("1,8,64K", &[1, 8, 65536]);
const WINDOW: u64 = 16;

/// A benchmark in one way of many.
pub(crate) type Cell<'r> = (&'r str, &'r str, &'r str);

/// Which of them a row belongs to.
pub(crate) fn cell(row: &Measurement) -> Cell<'_> {
    (&row.bench, &row.axes["sync"], &row.axes["win"])
}

/// Whether both ranks synchronise.
pub(crate) fn is_active(sync: &str) -> bool {
    matches!(sync, "pscw" | "fence")
}

/// The only reasons for which a benchmark may be unavailable here, as rows tell them.
pub(crate) fn unavailable(bench: &str, sync: &str) -> Option<&'static str> {
    let has_requests = ["rma.rput_", "rma.rget_"].iter().any(|start| bench.starts_with(start));
    if has_requests && is_active(sync) {
        Some("operations with requests are for passive targets, not for pscw and fence")
    } else if bench.ends_with("_bibw") && !is_active(sync) {
        Some("accesses both ways at once need pscw or fence")
    } else {
        None
    }
}

/// Open MPI 4 crashes in `MPI_Compare_and_swap` with the component that it would choose. What it chooses instead for created
/// and dynamic windows, `ucx`, swaps elements of 4 and 8 bytes only.
pub(crate) fn for_compare_and_swap(job: Job) -> Job {
    if mpi::is_open_mpi() { job.env("OMPI_MCA_osc", "^rdma") } else { job }
}

/// Every registered one-sided benchmark.
pub(crate) fn registered() -> BTreeSet<String> {
    let listed = Job::ombx("list --json rma.*").run().expect(0).stdout;
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    listed.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

/// Measures each in every way.
fn every_way(benches: &[&str], sizes: &str, adapt: fn(Job) -> Job) -> Vec<Measurement> {
    let kept = Kept::new();
    let job = kept.job(&benches.join(" ")).args(["--sync", "all", "--win", "all", "--sizes", sizes]);
    let job = job.args(["--max-time", "5ms", "--window", &WINDOW.to_string(), "--allow-skips", "-n", "2"]);
    let done = adapt(job).run().expect(0);
    let run = kept.run();
    let (_, tally) = run.end.unwrap_or_else(|| panic!("no end record\n{done}"));
    assert_eq!((tally.cases as usize, tally.failed, tally.corrupt), (run.rows.len(), 0, 0), "{done}");
    run.rows
}

/// Every cell is verified, or unavailable for the very reason that is expected of it; none is missing.
#[test]
fn every_operation_in_every_way() {
    let registered = registered();
    let others = registered.iter().map(String::as_str).filter(|bench| !ON_ONE_ELEMENT.contains(bench));
    let mut rows = every_way(&others.collect::<Vec<_>>(), MESSAGES.0, |job| job);
    rows.extend(every_way(&["rma.fop_latency"], ELEMENTS.0, |job| job));
    rows.extend(every_way(&["rma.cas_latency"], ELEMENTS.0, for_compare_and_swap));

    let mut verified = BTreeSet::new();
    let mut skipped: BTreeMap<&str, BTreeSet<Cell<'_>>> = BTreeMap::new();
    let mut sizes: BTreeMap<Cell<'_>, Vec<u64>> = BTreeMap::new();
    for row in &rows {
        sizes.entry(cell(row)).or_default().push(row.bytes.unwrap());
        let expected = unavailable(&row.bench, &row.axes["sync"]);
        match (&row.outcome, expected) {
            (Outcome::Ok, None) => {
                assert_eq!(row.check, Check::Passed, "{}", row.key);
                assert_work(row);
                assert_plausible(row);
                verified.insert(cell(row));
            }
            (Outcome::Skipped(why), Some(reason)) => {
                assert!(why.contains(reason), "{}: {why}", row.key);
                skipped.entry(reason).or_default().insert(cell(row));
            }
            (outcome, _) => panic!("{}: {outcome:?}, expected: {expected:?}", row.key),
        }
    }
    for bench in &registered {
        let (_, expected) = if ON_ONE_ELEMENT.contains(&bench.as_str()) { ELEMENTS } else { MESSAGES };
        for cell in SYNCS.iter().flat_map(|sync| WINDOWS.iter().map(move |win| (bench.as_str(), *sync, *win)))
        {
            assert_eq!(sizes.remove(&cell).as_deref(), Some(expected), "{cell:?}: each size once");
        }
    }
    assert!(sizes.is_empty(), "not registered: {:?}", sizes.keys());

    let unavailable: usize = skipped.values().map(BTreeSet::len).sum();
    assert_eq!(verified.len() + unavailable, registered.len() * SYNCS.len() * WINDOWS.len());
    let reasons = skipped.iter().map(|(why, cells)| format!("; {} unavailable: {why}", cells.len()));
    tell(&format!(
        "{}: {} benchmarks x {} synchronisations x {} windows: {} cells verified in {} rows{}",
        mpi::name(),
        registered.len(),
        SYNCS.len(),
        WINDOWS.len(),
        verified.len(),
        rows.iter().filter(|row| row.outcome == Outcome::Ok).count(),
        reasons.collect::<String>()
    ));
}

/// Active-target latency has a ping and a pong, passive-target one access; bandwidth a window of them, or one each way.
fn assert_work(row: &Measurement) {
    let (work, bytes) = (row.work.unwrap(), row.bytes.unwrap());
    if row.bench.ends_with("_latency") {
        let legs = if is_active(&row.axes["sync"]) { 2 } else { 1 };
        assert_eq!((work.legs, work.ops, work.bytes), (legs, legs, legs * bytes), "{}", row.key);
        assert_eq!((row.mb_per_s(), row.depth), (None, None), "{}", row.key);
        return;
    }
    let ops = if row.bench.ends_with("_bibw") { 2 * WINDOW } else { WINDOW };
    assert_eq!((work.legs, work.ops, work.bytes), (1, ops, ops * bytes), "{}", row.key);
    assert_eq!(row.depth, Some(WINDOW as u32), "{}", row.key);
    let median = row.summary.as_ref().unwrap().median;
    let rate = row.mb_per_s().unwrap().median;
    assert!((rate / (work.bytes as f64 / median * 1e3) - 1.0).abs() < 1e-9, "{}: {rate}", row.key);
}

/// Sizes at which libraries change protocol, odd ones, and none at all.
#[test]
fn awkward_sizes_and_depths() {
    let run = measured(
        "rma.put_latency rma.put_bw rma.get_latency rma.get_bw --sizes 0,3,63,65,4097,1000003 --window 3 \
         --max-time 10ms --sync lock,fence",
    );
    assert_eq!(run.rows.len(), 4 * 6 * 2);
    let deep = measured("rma.put_bw rma.get_bw --sizes 1,4K --window 1000 --max-time 10ms --sync flush");
    assert!(deep.rows.iter().all(|row| row.depth == Some(1000) && row.work.unwrap().ops == 1000));
}

/// Where the library would crash, the row says so and what helps.
#[test]
fn compare_and_swap_is_unavailable_where_it_crashes() {
    if !mpi::is_open_mpi() {
        return;
    }
    let kept = Kept::new();
    let done = kept.job("rma.cas_latency --sync all --win all --iterations 10").run().expect(4);
    let run = kept.run();
    assert!(!run.rows.is_empty(), "{done}");
    for row in &run.rows {
        let Outcome::Skipped(why) = &row.outcome else { panic!("{}: {:?}\n{done}", row.key, row.outcome) };
        assert!(why.contains("OMPI_MCA_osc=^rdma"), "{why}");
    }
}

/// The lists above are those of the program.
#[test]
fn the_axes_are_all_covered() {
    let listed = Job::ombx("list --json rma.put_bw").run().expect(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let axes = listed[0]["axes"].as_array().unwrap();
    let values = |name: &str| axes.iter().find(|axis| axis["name"] == name).unwrap()["values"].clone();
    assert_eq!(values("sync"), serde_json::json!(SYNCS));
    assert_eq!(values("win"), serde_json::json!(WINDOWS));
}
