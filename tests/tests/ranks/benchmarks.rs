//! Every registered benchmark over MPI once: its rows are verified, with the work and the samples of its definition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use ombx_record::{
    file::RunWithRows,
    result::{Check, Measurement, Outcome},
};
use ombx_tests::{
    Done, Files, Job,
    defects::may_be_wrong,
    kept::{Kept, assert_plausible},
    mpi, results, skipped,
};
use serde_json::Value;

const WINDOW: u64 = 4;
/// Size of messages, a whole number of elements on each of two ranks.
const SIZE: u64 = 1000;
/// Iterations of each row. Ranks without a core of their own wait for each other in every one of them.
const COUNTS: &str = "iterations = 4\nwarmup = 1\n";

/// Benchmark, as `ombx list` describes it.
struct Entry {
    name: String,
    /// Reason why it cannot run with this MPI, if it cannot.
    unavailable: Option<String>,
    /// Whether its default is one size.
    has_one_size: bool,
    across: String,
}

impl Entry {
    fn new(listed: &Value) -> Entry {
        let text = |name: &str| listed[name].as_str().map(str::to_owned);
        Entry {
            name: text("name").unwrap(),
            unavailable: text("available"),
            has_one_size: text("sizes").unwrap().parse::<u64>().is_ok(),
            across: text("across").unwrap(),
        }
    }

    /// Returns whether its usual window needs another component of Open MPI 4.
    fn needs_component(&self) -> bool {
        mpi::is_open_mpi() && self.name == "rma.cas_latency"
    }

    /// Returns the rows of the benchmark.
    fn rows<'s>(&self, sweep: &'s Sweep) -> Vec<&'s Measurement> {
        sweep.runs.iter().flat_map(|run| &run.rows).filter(|row| row.bench == self.name).collect()
    }
}

/// Runs of every benchmark, which all tests of this file look at.
struct Sweep {
    entries: Vec<Entry>,
    runs: Vec<RunWithRows>,
    /// Names of what is left in the directory of the files that were measured.
    left: Vec<String>,
    done: Vec<Done>,
}

fn sweep() -> &'static Sweep {
    static SWEEP: OnceLock<Sweep> = OnceLock::new();
    SWEEP.get_or_init(|| {
        let listed = Job::ombx("list --format json").run().expect(0).stdout;
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        // The test binary `sockets` measures the others.
        let entries = listed.iter().map(Entry::new).filter(|entry| !entry.name.starts_with("sockets."));
        let mut sweep =
            Sweep { entries: entries.collect(), runs: Vec::new(), left: Vec::new(), done: Vec::new() };
        let (special, usual): (Vec<&Entry>, Vec<&Entry>) =
            sweep.entries.iter().partition(|entry| entry.needs_component());
        let parts = [(usual, None), (special, Some(("OMPI_MCA_osc", "^rdma")))];
        for (entries, variable) in parts.into_iter().filter(|(entries, _)| !entries.is_empty()) {
            let (kept, measured) = (Kept::new(), Files::default());
            let suite = kept.files.write("all.toml", suite(&entries, &measured));
            let job = Job::ombx("run --allow-skips -n 2").arg(&suite).arg("-o").arg(kept.out());
            let job = variable.into_iter().fold(job, |job, (name, value)| job.env(name, value));
            let done = job.run();
            assert!(matches!(done.code, Some(0 | 5)), "{done}");
            sweep.done.push(done);
            sweep.runs.extend(results::runs_of(&kept.out()));
            sweep.left.extend(measured.names());
        }
        sweep
    })
}

/// Returns a suite with these benchmarks. Benchmarks of one size keep it.
fn suite(entries: &[&Entry], directory: &Files) -> String {
    let (one, many): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.has_one_size);
    let names = |entries: &[&Entry]| entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
    let directory = directory.root().display();
    let mut text = format!("about = 'every benchmark'\n\n[defaults]\n{COUNTS}directory = '{directory}'\n");
    if !one.is_empty() {
        text += &format!("\n[[entry]]\nrun = {:?}\n", names(&one));
    }
    if !many.is_empty() {
        text += &format!("\n[[entry]]\nrun = {:?}\nsizes = {SIZE}\nwindow = {WINDOW}\n", names(&many));
    }
    text
}

#[test]
fn every_benchmark_is_verified() {
    let sweep = sweep();
    let done = &sweep.done[0];
    for entry in &sweep.entries {
        let (name, rows) = (&entry.name, entry.rows(sweep));
        assert!(!rows.is_empty(), "{name} has no row\n{done}");
        // A benchmark that cannot run has a row without a size.
        let can_run = entry.unavailable.is_none() || entry.needs_component();
        for row in rows {
            assert!(entry.has_one_size || !can_run || row.bytes == Some(SIZE), "{}\n{done}", row.key);
            match (&row.outcome, &entry.unavailable) {
                (Outcome::Ok, _) if can_run => {
                    // The start of MPI transfers no data.
                    let is_start = row.bench == "collective.init" && row.check == Check::Unsupported;
                    assert!(is_start || row.check == Check::Passed, "{}: {:?}\n{done}", row.key, row.check);
                }
                (Outcome::Skipped(why), Some(expected)) => assert!(why.contains(expected), "{name}: {why}"),
                (Outcome::Failed(why), None) if may_be_wrong(row) => {
                    assert!(why.contains("arrived wrong"), "{}: {why}", row.key);
                }
                (Outcome::Skipped(why), None) if may_be_wrong(row) => {
                    assert!(why.contains("ends the job"), "{}: {why}", row.key);
                }
                (outcome, _) => panic!("{}: {outcome:?}\n{done}", row.key),
            }
        }
    }
    assert!(sweep.left.is_empty(), "{:?} stays behind\n{done}", sweep.left);
}

/// Legs, operations and messages of an iteration on two ranks, with windows of 4.
const WORK: [(&str, [u64; 3]); 28] = [
    ("p2p.latency", [2, 2, 2]),
    ("p2p.bw", [1, 4, 4]),
    ("p2p.bibw", [1, 8, 8]),
    ("p2p.pingping", [1, 2, 2]),
    ("p2p.exchange", [1, 4, 4]),
    ("p2p.fan_in", [1, 4, 4]),
    ("p2p.bw_mt", [1, 8, 8]),
    ("p2p.pingpong_mt", [2, 4, 4]),
    ("rma.put_latency", [2, 2, 2]),
    ("rma.rget_latency", [1, 1, 1]),
    ("rma.get_bw", [1, 4, 4]),
    ("rma.put_bibw", [1, 8, 8]),
    ("rma.put_incast", [1, 4, 4]),
    ("rma.acc_many_bw", [1, 8, 8]),
    ("io.write", [1, 2, 2]),
    ("collective.bcast", [1, 1, 1]),
    ("collective.reduce", [1, 1, 1]),
    ("collective.allreduce", [1, 1, 2]),
    ("collective.allreduce_mt", [1, 2, 4]),
    ("collective.scan", [1, 1, 2]),
    ("collective.gather", [1, 1, 2]),
    ("collective.scatterv", [1, 1, 2]),
    ("collective.allgather", [1, 1, 4]),
    ("collective.ialltoall", [1, 1, 4]),
    // Every rank gets a part of one message, or a message of its own.
    ("collective.reduce_scatter", [1, 1, 1]),
    ("collective.reduce_scatter_block", [1, 1, 2]),
    ("collective.neighbor_alltoall", [1, 1, 2]),
    ("collective.ineighbor_allgather", [1, 1, 2]),
];

/// Other programs compute rates from the work of a row.
#[test]
fn work_is_that_of_the_definition() {
    let sweep = sweep();
    let known: BTreeMap<&str, [u64; 3]> = WORK.into();
    let mut seen = BTreeSet::new();
    let rows = sweep.runs.iter().flat_map(|run| &run.rows);
    for row in rows.filter(|row| row.outcome == Outcome::Ok) {
        let (work, bytes) = (row.work.unwrap(), row.bytes.unwrap());
        if let Some([legs, ops, messages]) = known.get(&*row.bench) {
            assert_eq!([work.legs, work.ops, work.bytes], [*legs, *ops, messages * bytes], "{}", row.key);
            seen.insert(&*row.bench);
        }
        // Each operation moves one message. A put of rma.window has 8 bytes at most.
        let message = if row.bench == "rma.window" { bytes.min(8) } else { bytes };
        let moves_messages = !row.bench.starts_with("collective.");
        assert!(!moves_messages || work.bytes == work.ops * message, "{}: {work:?}", row.key);
    }
    assert_eq!(seen, known.into_keys().collect(), "benchmarks that were measured");
}

#[test]
fn figures_follow_from_the_samples() {
    let sweep = sweep();
    for entry in &sweep.entries {
        for row in entry.rows(sweep).into_iter().filter(|row| row.outcome == Outcome::Ok) {
            let timed = match entry.across.as_str() {
                "slowest" => row.ranks as usize,
                _ => row.samples.len(),
            };
            assert_eq!(row.samples.len(), timed, "{}: timed ranks", row.key);
            if entry.across == "origin" && row.samples.len() == 1 {
                assert_plausible(row);
                if let Some(rate) = row.mb_per_s() {
                    let (work, median) = (row.work.unwrap(), row.summary.as_ref().unwrap().median);
                    let expected = work.bytes as f64 / work.legs as f64 / median * 1e3;
                    assert!((rate.median / expected - 1.0).abs() < 1e-9, "{}: {rate:?}", row.key);
                }
            }
        }
    }
}

#[test]
fn each_rank_is_bound_to_its_own_core() {
    if mpi::cores() < 2 {
        return skipped("one core");
    }
    // Ranks with threads are not bound.
    let of_threads = |run: &&RunWithRows| run.rows.iter().any(|row| row.bench.ends_with("_mt"));
    for run in sweep().runs.iter().filter(|run| !of_threads(run)) {
        let places = &run.run.places;
        assert_ne!(places[0].cpus, places[1].cpus);
        assert!(places.iter().all(|place| place.cpu_numbers().len() < place.online as usize), "{places:?}");
    }
}
