//! Latency between two cores of this host, without MPI: what a launch finds the machine in.
//!
//! Virtual machines and power management change this time by several times, for seconds or minutes, and every message within a host
//! with it. Results keep it for each launch, so that a comparison can tell a changed machine from a changed library.

use std::{
    collections::BTreeMap,
    fs, hint, iter,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use ombx_host::{environment::place_of_thread, since::Since};
use ombx_record::{cpu_list::parse_cpus, stats::median};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Round trips of a sample.
const ROUND_TRIPS: u64 = 16;
/// Maximum number of samples.
const SAMPLES: usize = 400;
/// Maximum time, which a busy host needs.
const LONGEST: Duration = Duration::from_millis(10);
/// Readings of a flag before the thread lets others run.
const SPINS: u32 = 10_000;
/// Tells the other thread to end.
const END: u64 = u64::MAX;

/// A flag with a cache line, and its neighbour that processors fetch along with it, of its own.
#[repr(align(128))]
#[derive(Default)]
struct Flag(AtomicU64);

impl Flag {
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    /// Waits for another value than `seen`, and returns it.
    fn change(&self, seen: u64) -> u64 {
        loop {
            for _ in 0..SPINS {
                let value = self.0.load(Ordering::Acquire);
                if value != seen {
                    return value;
                }
                hint::spin_loop();
            }
            thread::yield_now();
        }
    }
}

/// Attempts on a busy host, whose threads may not run at the same time.
const ATTEMPTS: usize = 3;

/// Returns half the round trip of a cache line between the first two cores of this host, in nanoseconds. `None` for a single
/// core, and on a host that is too busy.
pub(super) fn latency_ns() -> Option<f64> {
    (0..ATTEMPTS).find_map(|_| measured())
}

fn measured() -> Option<f64> {
    let [first, second] = cores().get(..2)?.try_into().ok()?;
    let (there, back) = (Flag::default(), Flag::default());
    let before = sched_getaffinity(None).ok()?;
    let samples = thread::scope(|scope| {
        let answer = || {
            bind(second);
            let mut seen = 0;
            while seen != END {
                seen = there.change(seen);
                back.set(seen);
            }
        };
        thread::Builder::new().spawn_scoped(scope, answer).ok()?;
        bind(first);
        let started = Since::now();
        let mut sent = 0;
        let sample = || {
            let since = Since::now();
            for _ in 0..ROUND_TRIPS {
                there.set(sent + 1);
                sent = back.change(sent);
            }
            since.elapsed().as_nanos() as f64 / (2 * ROUND_TRIPS) as f64
        };
        let in_time = |_: &f64| started.elapsed() < LONGEST;
        let samples: Vec<f64> = iter::repeat_with(sample).take(SAMPLES).take_while(in_time).collect();
        there.set(END);
        Some(samples)
    });
    let _ = sched_setaffinity(None, &before);
    median(&samples?)
}

fn bind(cpu: u32) {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    // Without its CPU the thread measures between those that it gets.
    let _ = sched_setaffinity(None, &set);
}

/// Returns the first hardware thread of each core that this process may use, at most as many as its CPU quota allows.
pub(crate) fn cores() -> Vec<u32> {
    let sibling = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let list = fs::read_to_string(path).unwrap_or_default();
        parse_cpus(list.trim()).first().copied().unwrap_or(cpu)
    };
    let mut cores: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in place_of_thread().cpu_numbers() {
        cores.entry(sibling(cpu)).or_insert(cpu);
    }
    let most = thread::available_parallelism().map_or(1, usize::from);
    cores.into_values().take(most.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use crate::launch::core_to_core::*;

    #[test]
    fn the_latency_is_that_of_a_cache_line_and_the_cpus_stay_as_they_were() {
        let before = sched_getaffinity(None).unwrap();
        let latency = latency_ns();
        // A cache line takes tens to hundreds of nanoseconds. A busy host has no sample in time, or some with time slices in them.
        assert!(latency.is_none_or(|ns| cores().len() > 1 && (1.0..1e7).contains(&ns)), "{latency:?}");
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
