//! Rows under foreign load: prints those that are 10 % above the undisturbed median although neither their interval nor a mark says
//! so. It judges nothing, because the machine may change meanwhile; `ombx_core::trust` has tests of each mark on constructed samples.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use ombx_host::host::HostState;
use ombx_record::result::Measurement;
use ombx_tests::{kept::Kept, mpi, print_note, skipped};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Options of `ombx run` over the MPI under test, and over sockets.
const JOBS: [&str; 2] = [
    "p2p.latency p2p.bw rma.put_bw collective.allreduce --sizes 8,64K --max-time 100ms",
    "sockets.latency --sizes 8,64K --max-time 100ms",
];
/// Codes of marks about a disturbed or unsteady row. Other marks hold for every row.
const OF_DISTURBANCES: [&str; 5] = ["preempted", "waited", "stolen", "no_interval", "bimodal"];
/// Factor by which a median may differ without such a mark.
const TOLERANCE: f64 = 1.1;
/// Maximum share of CPU time that other programs may use at the start.
const FOREIGN: f64 = 0.03;
/// Number of runs without load.
const QUIET_RUNS: usize = 3;
/// Number of repeated runs, with load and then without, that must confirm a missing mark.
const AGAIN: usize = 3;

/// Work of a load thread.
#[derive(Debug, Clone, Copy)]
enum Load {
    Computing,
    Writing,
}

/// Threads that keep CPUs busy until they are dropped.
struct LoadThreads {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl LoadThreads {
    /// Starts one thread on each CPU of the list.
    fn on(cpus: &[usize], busy: Load) -> LoadThreads {
        let over = Arc::new(AtomicBool::new(false));
        let start = |cpu: &usize| {
            let (over, cpu) = (Arc::clone(&over), *cpu);
            thread::spawn(move || {
                let mut only = CpuSet::new();
                only.set(cpu);
                sched_setaffinity(None, &only).expect("a thread can be bound to the CPU");
                let mut memory = vec![0u8; if matches!(busy, Load::Writing) { 64 << 20 } else { 1 << 10 }];
                while !over.load(Ordering::Relaxed) {
                    memory.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                    std::hint::black_box(&mut memory);
                }
            })
        };
        let threads = cpus.iter().map(start).collect();
        LoadThreads { over, threads }
    }
}

impl Drop for LoadThreads {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn rows() -> BTreeMap<String, Measurement> {
    let one = |job: &str| {
        let kept = Kept::new();
        kept.job(job).run().expect(0);
        kept.run().rows
    };
    JOBS.iter().flat_map(|job| one(job)).map(|row| (row.key.clone(), row)).collect()
}

fn median(row: &Measurement) -> Option<f64> {
    Some(row.summary.as_ref()?.median)
}

/// Returns the caution or invalid mark about a disturbance. A note says that the disturbance cannot have changed the median.
fn doubt(row: &Measurement) -> Option<&str> {
    row.doubts().find(|mark| OF_DISTURBANCES.contains(&mark.code.name())).map(|mark| mark.short.as_str())
}

/// Returns the first two CPUs of this process.
fn cpus() -> Vec<usize> {
    let place = ombx_host::environment::place_of_thread();
    place.cpu_numbers().into_iter().take(2).map(|cpu| cpu as usize).collect()
}

/// Runs without load. Returns the medians of rows that agree in all runs, the number of rows with a doubt, and the number of rows.
fn quiet() -> (BTreeMap<String, f64>, usize, usize) {
    let runs: Vec<_> = (0..QUIET_RUNS).map(|_| rows()).collect();
    let marked = runs.iter().flat_map(BTreeMap::values).filter(|row| doubt(row).is_some()).count();
    let all = runs.iter().map(BTreeMap::len).sum();
    let of = |key: &String| {
        let mut medians: Vec<f64> = runs.iter().filter_map(|run| median(run.get(key)?)).collect();
        medians.sort_by(f64::total_cmp);
        let [least, .., most] = medians[..] else { return None };
        (most <= least * TOLERANCE).then(|| (key.clone(), medians[medians.len() / 2]))
    };
    (runs[0].keys().filter_map(of).collect(), marked, all)
}

fn within_tolerance(ratio: f64) -> bool {
    (1.0 / TOLERANCE..=TOLERANCE).contains(&ratio)
}

/// Returns whether the interval of a row comes within the tolerance of this median.
fn interval_reaches(row: &Measurement, median: f64) -> bool {
    let interval = row.summary.as_ref().and_then(|summary| summary.ci95);
    interval.is_some_and(|[low, high]| low <= median * TOLERANCE && high >= median / TOLERANCE)
}

/// Returns the row key at the start of a line of `changed_without_doubt`.
fn key_of(sentence: &str) -> &str {
    sentence.split(": ").next().unwrap_or_default()
}

/// Returns a line for each row whose median is higher although neither its interval nor a mark says so.
fn changed_without_doubt(
    quiet: &BTreeMap<String, f64>,
    loaded: &BTreeMap<String, Measurement>,
) -> Vec<String> {
    let differs = |(key, before): (&String, &f64)| {
        let row = loaded.get(key)?;
        let ratio = median(row)? / before;
        // A load slows rows down. A row that is faster than before is one of a machine that has become faster.
        let silent = ratio > TOLERANCE && !interval_reaches(row, *before) && doubt(row).is_none();
        silent.then(|| format!("{key}: {ratio:.2} times as long"))
    };
    quiet.iter().filter_map(differs).collect()
}

#[test]
fn disturbed_rows_are_printed_with_their_marks() {
    let cpus = cpus();
    let &[first, second] = &cpus[..] else { return skipped("two ranks need two CPUs") };
    if mpi::cores() < std::thread::available_parallelism().map_or(1, usize::from) {
        return skipped("load on the other hardware thread of a core cannot be detected");
    }
    let foreign = HostState::here(None).foreign.unwrap_or(1.0);
    if foreign > FOREIGN {
        let busy = foreign * 100.0;
        return skipped(&format!(
            "other programs use {busy:.0} % of the CPUs, so there is no undisturbed median to compare with"
        ));
    }
    let (quiet, marked, all) = quiet();
    print_note(&format!(
        "without load: {marked} of {all} rows have a doubt, {} have a steady median",
        quiet.len()
    ));
    if quiet.is_empty() {
        return skipped("no row has the same median in three runs without load");
    }
    let loads: [(&str, &[usize], Load); 5] = [
        ("one computes", &[first], Load::Computing),
        ("two compute", &[first, second], Load::Computing),
        ("four compute", &[first, first, second, second], Load::Computing),
        ("one writes memory", &[second], Load::Writing),
        ("two write memory", &[first, second], Load::Writing),
    ];
    for (name, cpus, busy) in loads {
        let threads = LoadThreads::on(cpus, busy);
        let loaded = rows();
        let mut wrong = changed_without_doubt(&quiet, &loaded);
        // Some rows differ by more than 10 % between launches without load. The load must change a row in every repetition,
        for _ in 0..AGAIN {
            if !wrong.is_empty() {
                let again = changed_without_doubt(&quiet, &rows());
                wrong.retain(|one| again.iter().any(|other| key_of(other) == key_of(one)));
            }
        }
        drop(threads);
        // and without load the row must have its first median again.
        for _ in 0..AGAIN {
            if !wrong.is_empty() {
                let now = rows();
                let steady =
                    |key: &str| within_tolerance(median(now.get(key)?)? / quiet.get(key)?).then_some(());
                wrong.retain(|one| steady(key_of(one)).is_some());
            }
        }
        let marked = loaded.values().filter(|row| doubt(row).is_some()).count();
        print_note(&format!("{name}: {marked} of {} rows have a doubt", loaded.len()));
        for (key, row) in &loaded {
            let ratio = quiet.get(key).zip(median(row)).map(|(before, now)| now / before);
            let (ratio, mark) = (ratio.unwrap_or(f64::NAN), doubt(row).unwrap_or("-"));
            print_note(&format!("  {key}: {ratio:.2} times as long, {mark}"));
        }
        print_note(&format!("{name}: rows without a doubt: {wrong:#?}"));
    }
}
