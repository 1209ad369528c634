//! Neighbours on the cores: a row is within a tenth of its quiet median, or it says what could have spoiled it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use ombx_core::{result::Measurement, system::host::Host};
use ombx_tests::{mpi, skipped, tell};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Kept;

/// Over the MPI under test, and over sockets.
const JOBS: [&str; 2] = [
    "p2p.latency p2p.bw rma.put_bw collective.allreduce --sizes 8,64K --max-time 100ms",
    "sockets.latency --sizes 8,64K --max-time 100ms",
];
/// What says that this row was disturbed, or has no steady figure; standing notices say something of every row.
const SAYS_SO: [&str; 7] =
    ["preempted", "waited", "stolen", "not_converged", "no_interval", "autocorrelated", "bimodal"];
/// A median may differ by this factor without a word.
const ALIKE: f64 = 1.1;
/// A machine of which others use more than this is not quiet.
const FOREIGN: f64 = 0.03;
/// Quiet runs, whose medians have to be alike.
const QUIET_RUNS: usize = 3;
/// Runs that a row has to confirm of which it seems that it does not notice its neighbours; and quiet ones after them.
const AGAIN: usize = 3;

/// What a neighbour does.
#[derive(Debug, Clone, Copy)]
enum Busy {
    Computing,
    Writing,
}

/// Threads that keep CPUs busy until they are dropped.
struct Neighbours {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Neighbours {
    /// One for each CPU that is named.
    fn on(cpus: &[usize], busy: Busy) -> Neighbours {
        let over = Arc::new(AtomicBool::new(false));
        let start = |cpu: &usize| {
            let (over, cpu) = (Arc::clone(&over), *cpu);
            thread::spawn(move || {
                let mut only = CpuSet::new();
                only.set(cpu);
                sched_setaffinity(None, &only).expect("a neighbour may run on the CPU");
                let mut memory = vec![0u8; if matches!(busy, Busy::Writing) { 64 << 20 } else { 1 << 10 }];
                while !over.load(Ordering::Relaxed) {
                    memory.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
                    std::hint::black_box(&mut memory);
                }
            })
        };
        let threads = cpus.iter().map(start).collect();
        Neighbours { over, threads }
    }
}

impl Drop for Neighbours {
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

fn says_so(row: &Measurement) -> Option<&str> {
    row.trust.iter().find(|notice| SAYS_SO.contains(&&*notice.code)).map(|notice| notice.short.as_str())
}

/// The CPUs of this process, as many as two ranks use.
fn cpus() -> Vec<usize> {
    let place = ombx_core::team::Place::here();
    place.cpu_numbers().into_iter().take(2).map(|cpu| cpu as usize).collect()
}

/// The median of quiet runs, of rows that are the same in all of them; and how many were marked all the same.
fn quiet() -> (BTreeMap<String, f64>, usize, usize) {
    let runs: Vec<_> = (0..QUIET_RUNS).map(|_| rows()).collect();
    let marked = runs.iter().flat_map(BTreeMap::values).filter(|row| says_so(row).is_some()).count();
    let all = runs.iter().map(BTreeMap::len).sum();
    let of = |key: &String| {
        let mut medians: Vec<f64> = runs.iter().filter_map(|run| median(run.get(key)?)).collect();
        medians.sort_by(f64::total_cmp);
        let [least, .., most] = medians[..] else { return None };
        (most <= least * ALIKE).then(|| (key.clone(), medians[medians.len() / 2]))
    };
    (runs[0].keys().filter_map(of).collect(), marked, all)
}

fn alike(ratio: f64) -> bool {
    (1.0 / ALIKE..=ALIKE).contains(&ratio)
}

/// The row that a sentence of `unnoticed` is about.
fn key_of(sentence: &str) -> &str {
    sentence.split(": ").next().unwrap_or_default()
}

/// What is neither alike nor marked.
fn unnoticed(quiet: &BTreeMap<String, f64>, loaded: &BTreeMap<String, Measurement>) -> Vec<String> {
    let differs = |(key, before): (&String, &f64)| {
        let row = loaded.get(key)?;
        let ratio = median(row)? / before;
        let silent = !alike(ratio) && says_so(row).is_none();
        silent.then(|| format!("{key}: {ratio:.2} times as long"))
    };
    quiet.iter().filter_map(differs).collect()
}

#[test]
fn neighbours_are_noticed() {
    let cpus = cpus();
    let &[first, second] = &cpus[..] else { return skipped("two ranks need two CPUs") };
    if mpi::cores() < std::thread::available_parallelism().map_or(1, usize::from) {
        return skipped("who shares a core's other hardware thread is not noticed");
    }
    let foreign = Host::here(None).foreign.unwrap_or(1.0);
    if foreign > FOREIGN {
        let busy = foreign * 100.0;
        return skipped(&format!(
            "others use {busy:.0} % of the CPUs: there is no quiet median to compare with"
        ));
    }
    let (quiet, marked, all) = quiet();
    tell(&format!("quiet: {marked} of {all} rows are marked, {} have a steady median", quiet.len()));
    if quiet.is_empty() {
        return skipped("no row has the same median in three quiet runs");
    }
    let loads: [(&str, &[usize], Busy); 5] = [
        ("one computes", &[first], Busy::Computing),
        ("two compute", &[first, second], Busy::Computing),
        ("four compute", &[first, first, second, second], Busy::Computing),
        ("one writes memory", &[second], Busy::Writing),
        ("two write memory", &[first, second], Busy::Writing),
    ];
    for (name, cpus, busy) in loads {
        let neighbours = Neighbours::on(cpus, busy);
        let loaded = rows();
        let mut wrong = unnoticed(&quiet, &loaded);
        // Launches of some rows differ by more than a tenth without any neighbour: what neighbours do, they do each time..
        for _ in 0..AGAIN {
            if !wrong.is_empty() {
                let again = unnoticed(&quiet, &rows());
                wrong.retain(|one| again.iter().any(|other| key_of(other) == key_of(one)));
            }
        }
        drop(neighbours);
        // .. and without them the row is again what it was.
        for _ in 0..AGAIN {
            if !wrong.is_empty() {
                let now = rows();
                let steady = |key: &str| alike(median(now.get(key)?)? / quiet.get(key)?).then_some(());
                wrong.retain(|one| steady(key_of(one)).is_some());
            }
        }
        let marked = loaded.values().filter(|row| says_so(row).is_some()).count();
        tell(&format!("{name}: {marked} of {} rows are marked", loaded.len()));
        for (key, row) in &loaded {
            let ratio = quiet.get(key).zip(median(row)).map(|(before, now)| now / before);
            let (ratio, mark) = (ratio.unwrap_or(f64::NAN), says_so(row).unwrap_or("-"));
            tell(&format!("  {key}: {ratio:.2} times as long, {mark}"));
        }
        assert!(wrong.is_empty(), "{name}: not noticed: {wrong:#?}");
    }
}
