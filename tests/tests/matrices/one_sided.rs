//! Tests of the one-sided benchmarks: each is verified with every synchronisation and window, or skipped for a known reason.

use std::collections::{BTreeMap, BTreeSet};

use ombx_record::result::{Check, Figure, Measurement, Outcome};
use ombx_tests::{
    Job, interpose,
    kept::{Kept, assert_plausible, measured},
    mpi, print_note,
};

const SYNCS: [&str; 7] = ["pscw", "fence", "lock", "lock_exclusive", "lock_all", "flush", "flush_local"];
const WINDOWS: [&str; 5] = ["allocate", "create", "alloc_mem", "dynamic", "shared"];

/// Sizes of benchmarks on one element, as an option and as numbers.
const ELEMENTS: (&str, &[u64]) = ("4,8", &[4, 8]);
/// Sizes of the other benchmarks.
const MESSAGES: (&str, &[u64]) = ("1,8,64K", &[1, 8, 65536]);
const WINDOW: u64 = 16;
/// The benchmark that Open MPI 4 runs only with another component.
const COMPARE_AND_SWAP: &str = "rma.cas_latency";

/// A benchmark, a synchronisation and a window.
type Cell<'r> = (&'r str, &'r str, &'r str);

/// Returns the cell of a row.
fn cell(row: &Measurement) -> Cell<'_> {
    (&row.bench, &row.axes["sync"], &row.axes["win"])
}

/// Returns whether a synchronisation is active-target.
fn is_active(sync: &str) -> bool {
    matches!(sync, "pscw" | "fence")
}

/// A one-sided benchmark, as `ombx list` describes it.
struct Entry {
    name: String,
    /// Whether it works on one element only: its default is one size.
    one_element: bool,
    /// Whether its operation returns a request: its default synchronisation is passive-target.
    has_requests: bool,
}

impl Entry {
    fn from_json(listed: &serde_json::Value) -> Entry {
        let axes = listed["axes"].as_array().unwrap();
        let sync = axes.iter().find(|axis| axis["name"] == "sync").unwrap();
        Entry {
            name: listed["name"].as_str().unwrap().to_owned(),
            one_element: listed["sizes"].as_str().unwrap().parse::<u64>().is_ok(),
            has_requests: !is_active(sync["default"].as_str().unwrap()),
        }
    }

    fn sizes(&self) -> (&'static str, &'static [u64]) {
        if self.one_element { ELEMENTS } else { MESSAGES }
    }

    /// Returns the reason for which rows with a synchronisation are skipped, if they are.
    fn unavailable(&self, sync: &str) -> Option<&'static str> {
        if self.has_requests && is_active(sync) {
            Some("operations with requests need passive-target synchronisation, not pscw or fence")
        } else if self.name.ends_with("_bibw") && !is_active(sync) {
            Some("accesses in both directions need pscw or fence")
        } else {
            None
        }
    }
}

/// Returns every registered one-sided benchmark of two ranks. Those of more ranks have no choice of synchronisation and window, and
/// those of a single flush or fence have no choice of synchronisation.
fn registered() -> Vec<Entry> {
    let listed = Job::ombx("list --format json rma.*").run().expect(0).stdout;
    let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).unwrap();
    let of_two = |bench: &&serde_json::Value| {
        let name = bench["name"].as_str().unwrap();
        !["rma.put_incast", "rma.put_passive", "rma.window"].contains(&name) && !name.contains("_many_")
    };
    listed.iter().filter(of_two).map(Entry::from_json).collect()
}

/// Excludes the component in which `MPI_Compare_and_swap` of Open MPI 4 crashes. The component that replaces it for created and
/// dynamic windows, `ucx`, supports elements of 4 and 8 bytes only.
fn for_compare_and_swap(job: Job) -> Job {
    if mpi::is_open_mpi() { job.env("OMPI_MCA_osc", "^rdma") } else { job }
}

/// Measures benchmarks with every synchronisation and every window.
fn every_way(benches: &[&Entry], sizes: &str, adapt: fn(Job) -> Job) -> Vec<Measurement> {
    let kept = Kept::new();
    let names: Vec<&str> = benches.iter().map(|bench| bench.name.as_str()).collect();
    let job = kept.job(&names.join(" ")).args(["--sync", "all", "--win", "all", "--sizes", sizes]);
    let job = job.args(["--max-time", "5ms", "--allow-skips", "-n", "2"]);
    let streams = names.iter().any(|name| name.ends_with("bw"));
    let job = if streams { job.args(["--window", &WINDOW.to_string()]) } else { job };
    let done = adapt(job).run().expect(0);
    let run = kept.run();
    let (_, tally) = run.end.unwrap_or_else(|| panic!("no end record\n{done}"));
    assert_eq!((tally.cases as usize, tally.failed, tally.corrupt), (run.rows.len(), 0, 0), "{done}");
    run.rows
}

/// Checks that every cell is verified, or skipped for the expected reason, and that none is missing.
#[test]
fn every_operation_in_every_way() {
    let registered = registered();
    let (swap, others): (Vec<_>, Vec<_>) =
        registered.iter().partition(|bench| bench.name == COMPARE_AND_SWAP);
    let (elements, messages): (Vec<_>, Vec<_>) = others.into_iter().partition(|bench| bench.one_element);
    let mut rows = every_way(&messages, MESSAGES.0, |job| job);
    rows.extend(every_way(&elements, ELEMENTS.0, |job| job));
    rows.extend(every_way(&swap, ELEMENTS.0, for_compare_and_swap));
    let entry = |name: &str| registered.iter().find(|bench| bench.name == name).unwrap();

    let mut verified = BTreeSet::new();
    let mut skipped: BTreeMap<&str, BTreeSet<Cell<'_>>> = BTreeMap::new();
    let mut sizes: BTreeMap<Cell<'_>, Vec<u64>> = BTreeMap::new();
    for row in &rows {
        sizes.entry(cell(row)).or_default().push(row.bytes.unwrap());
        let expected = entry(&row.bench).unavailable(&row.axes["sync"]);
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
        let cells = SYNCS.iter().flat_map(|sync| WINDOWS.map(|win| (bench.name.as_str(), *sync, win)));
        for cell in cells {
            assert_eq!(sizes.remove(&cell).as_deref(), Some(bench.sizes().1), "{cell:?}: each size once");
        }
    }
    assert!(sizes.is_empty(), "not registered: {:?}", sizes.keys());

    let unavailable: usize = skipped.values().map(BTreeSet::len).sum();
    assert_eq!(verified.len() + unavailable, registered.len() * SYNCS.len() * WINDOWS.len());
    let reasons = skipped.iter().map(|(why, cells)| format!("; {} unavailable: {why}", cells.len()));
    print_note(&format!(
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

/// Checks legs, operations and bytes: two legs for active-target latency, `WINDOW` operations per direction for bandwidth.
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

/// Each operation visits every copy several times. Sums then count the visits of the copy that is checked.
#[test]
fn cold_buffers_are_verified() {
    let run = measured(
        "rma.put_latency rma.put_bw rma.put_bibw rma.get_bw rma.acc_latency rma.acc_bw rma.get_acc_latency \
         rma.fop_latency rma.rput_bw --cache cold --cache-size 64K --sizes 8 --window 4 --win all \
         --iterations 1200 --warmup 3",
    );
    assert_eq!(run.rows.len(), 9 * WINDOWS.len());
    for row in &run.rows {
        let Some(Figure::Value(bytes)) = row.figures.get("cold_bytes") else { panic!("{}", row.key) };
        assert!(*bytes >= f64::from(128 << 10), "{}: {bytes}", row.key);
    }
    let syncs = "rma.acc_latency rma.get_latency --cache cold --cache-size 64K --sizes 8,64K --sync all \
                 --iterations 40";
    assert_eq!(measured(syncs).rows.len(), 2 * SYNCS.len() * 2);
}

/// Measures 0 bytes, odd sizes, sizes at which libraries change protocol, and odd depths.
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

/// Checks that `alloc_mem` calls `MPI_Alloc_mem` on both ranks, with the hint unless it is turned off, and that `create` does not.
#[test]
fn memory_of_the_library_has_the_hint() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    for (options, with, without) in
        [("--win alloc_mem", 2, 0), ("--win alloc_mem --no-hints", 0, 2), ("--win create", 0, 0)]
    {
        let kept = Kept::new();
        let words = format!("rma.put_latency {options} --sizes 8 --iterations 10 -n 2 --verbose");
        let done = kept.job(&words).args(interpose::arguments(library, "alloc")).run().expect(0);
        let count =
            |value: &str| done.stderr.matches(&format!("MPI_Alloc_mem: alloc_shm is {value}")).count();
        assert_eq!((count("true"), count("none")), (with, without), "{options}\n{done}");
        assert_eq!(kept.run().rows[0].check, Check::Passed, "{done}");
    }
}

/// Calls of a synchronisation, each as often as an operation, and none besides; fences and locks around flushes are fewer or more.
const CALLS: [(&str, &[&str], &[&str]); 7] = [
    ("pscw", &["post", "start", "complete", "wait"], &[]),
    ("fence", &[], &["fence"]),
    ("lock", &["lock_shared", "unlock"], &[]),
    ("lock_exclusive", &["lock_exclusive", "unlock"], &[]),
    ("lock_all", &["lock_all", "unlock_all"], &[]),
    ("flush", &["flush"], &["lock_shared", "unlock"]),
    ("flush_local", &["flush_local"], &["lock_shared", "unlock"]),
];

/// Counts the calls of both ranks. With an active target each accesses the other, with a passive one the target calls nothing.
#[test]
fn every_synchronisation_makes_its_calls() {
    let library = interpose::library(env!("CARGO_TARGET_TMPDIR"));
    for ((sync, each, others), (bench, operation)) in CALLS.iter().flat_map(|calls| {
        [("rma.put_latency", "put"), ("rma.get_bw --window 4", "get")].map(|bench| (calls, bench))
    }) {
        let kept = Kept::new();
        let words = format!("{bench} --sync {sync} --sizes 8 --iterations 10 -n 2 --verbose");
        let done = kept.job(&words).args(interpose::arguments(library, "count")).run().expect(0);
        let ranks = interpose::calls(&done);
        let [origin, target] = &ranks[..] else { panic!("{done}") };
        let (many, names) = (bench.contains("_bw"), [*each, *others].concat());
        let both = is_active(sync) && !many;
        let epochs = origin[operation] / if many { 4 } else { 1 };
        assert!(epochs >= 10, "{sync}: {origin:?}");
        let of_sync = |calls: &BTreeMap<String, u64>| -> BTreeSet<String> {
            calls.keys().filter(|name| !["send", operation].contains(&name.as_str())).cloned().collect()
        };
        if many && *sync == "pscw" {
            // Only the origin has access, and only the target is exposed.
            assert_eq!([origin["start"], origin["complete"], target["post"], target["wait"]], [epochs; 4]);
            assert_eq!((of_sync(origin).len(), of_sync(target).len()), (2, 2), "{ranks:?}");
            continue;
        }
        assert_eq!(
            of_sync(origin),
            names.iter().map(|name| (*name).to_owned()).collect(),
            "{sync}: {origin:?}"
        );
        assert!(each.iter().all(|name| origin[*name] == epochs), "{sync}: {origin:?}");
        assert_eq!(target.get(operation), both.then_some(&epochs), "{sync}: {target:?}");
        if is_active(sync) {
            assert_eq!(of_sync(target), of_sync(origin), "{sync}: {target:?}")
        } else {
            assert!(of_sync(target).is_empty(), "{sync}: {target:?}")
        }
        if *sync == "fence" {
            assert!(origin["fence"] > 2 * epochs && target["fence"] == origin["fence"], "{ranks:?}");
        }
    }
}

/// Open MPI 4 crashes with integers of 8 bytes on windows that it allocates: only these rows are skipped, and name the remedy.
#[test]
fn compare_and_swap_is_unavailable_where_it_crashes() {
    if !mpi::is_open_mpi() {
        return;
    }
    let kept = Kept::new();
    let done = kept.job("rma.cas_latency --sync all --win all --iterations 10").run();
    let run = kept.run();
    assert!(!run.rows.is_empty(), "{done}");
    for row in &run.rows {
        match &row.outcome {
            Outcome::Skipped(why) if row.axes["win"] == "allocate" => {
                assert!(why.contains("OMPI_MCA_osc=^rdma"), "{why}");
            }
            outcome => assert_eq!((outcome, row.axes["win"] == "allocate"), (&Outcome::Ok, false), "{done}"),
        }
    }
}

#[test]
fn a_value_that_is_named_twice_is_measured_once() {
    let run = measured("rma.put_latency --win all,all --win create --sizes 8 --iterations 20");
    let windows: Vec<&str> = run.rows.iter().map(|row| &*row.axes["win"]).collect();
    assert_eq!(windows, WINDOWS);
}

/// Checks that the lists above are those of the program.
#[test]
fn the_axes_are_all_covered() {
    let listed = Job::ombx("list --format json rma.put_bw").run().expect(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let axes = listed[0]["axes"].as_array().unwrap();
    let values = |name: &str| axes.iter().find(|axis| axis["name"] == name).unwrap()["values"].clone();
    assert_eq!(values("sync"), serde_json::json!(SYNCS));
    assert_eq!(values("win"), serde_json::json!(WINDOWS));
}

/// Every rank has a block for each rank that accesses it; wrong blocks are wrong data.
#[test]
fn several_targets_are_accessed_in_every_shape() {
    // More ranks than cores take long.
    for (ranks, sizes, iterations) in [(2, "0,1,8,64K", 20), (3, "8", 3)] {
        let kept = Kept::new();
        let benches = "rma.put_many_latency rma.get_many_latency rma.put_many_bw rma.get_many_bw";
        let options = format!(
            "--shape all --completion all --sizes {sizes} --window 3 --iterations {iterations} --warmup 1"
        );
        let done = kept.job(&format!("{benches} -n {ranks} {options}")).run().expect(0);
        let run = kept.run();
        assert_eq!(run.rows.len(), 4 * 4 * 3 * sizes.split(',').count(), "{done}");
        for row in &run.rows {
            assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
            let pairs = match row.axes["shape"].as_str() {
                "one_to_all" => ranks - 1,
                "all_to_all" => ranks * (ranks - 1),
                "pairs" => ranks / 2 * 2,
                _ => 2 * ranks,
            };
            let messages = if row.bench.ends_with("bw") { 3 * pairs } else { pairs };
            assert_eq!(row.work.unwrap().bytes, messages * row.bytes.unwrap(), "{}", row.key);
            assert_eq!(row.samples.len() as u64, ranks, "{}: every rank is timed", row.key);
        }
    }
}

/// Each rank makes a contribution of its own to the memory of rank 0, whose sum is checked.
#[test]
fn every_rank_accumulates_into_the_memory_of_one() {
    for (ranks, sizes, types, iterations) in [(2, "0,8,64K", "widest,float,char", 20), (3, "8", "float", 3)] {
        let kept = Kept::new();
        let benches = "rma.acc_many_latency rma.acc_many_bw";
        let options = format!("--completion all --type {types} --sizes {sizes} --window 3");
        let done = kept
            .job(&format!("{benches} -n {ranks} {options} --iterations {iterations} --warmup 1"))
            .run()
            .expect(0);
        let run = kept.run();
        assert_eq!(run.rows.len(), 2 * 3 * types.split(',').count() * sizes.split(',').count(), "{done}");
        for row in &run.rows {
            assert_eq!((&row.outcome, &row.check), (&Outcome::Ok, &Check::Passed), "{}\n{done}", row.key);
            let messages = if row.bench.ends_with("bw") { 3 * ranks } else { ranks };
            assert_eq!(row.work.unwrap().bytes, messages * row.bytes.unwrap(), "{}", row.key);
            assert_eq!(row.samples.len() as u64, ranks, "{}: every rank is timed", row.key);
        }
    }
}

#[test]
fn windows_are_created_and_freed() {
    let kept = Kept::new();
    let done = kept.job("rma.window -n 2 --sizes 0,1,8,64K --iterations 20 --warmup 1").run().expect(0);
    let run = kept.run();
    let found: Vec<(u64, u64)> =
        run.rows.iter().map(|row| (row.bytes.unwrap(), row.work.unwrap().bytes)).collect();
    assert_eq!(found, [(0, 0), (1, 2), (8, 16), (65536, 16)]);
    assert!(run.rows.iter().all(|row| row.check == Check::Passed && row.samples.len() == 2), "{done}");
}
