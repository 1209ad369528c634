//! Counters of the CPU and of the kernel for the thread that measures, by `perf_event_open`.

use std::{collections::BTreeMap, io};

use ombx_record::{
    regular_file,
    result::{Figure, Figures},
};
use perf_event::{
    Builder, Counter,
    events::{Cache, CacheOp, CacheResult, Event, Hardware, Software, WhichCache},
};
use rustix::io::Errno;

/// Figure of instructions per operation, which comparisons use.
pub const INSTRUCTIONS: &str = "instructions_per_op";

/// Counts of one thread between starts and stops, by the name of the figure; or the reason why there is none.
pub type Counted = BTreeMap<String, std::result::Result<f64, String>>;

/// Counters of the calling thread. They do not run before the first start.
pub trait Meter {
    /// Starts the counters.
    fn start(&mut self);
    /// Stops the counters.
    fn stop(&mut self);
    /// Returns what was counted until now.
    fn counted(&mut self) -> Counted;
}

/// Opens the counters of the calling thread.
pub type OpenMeter = fn() -> Box<dyn Meter>;

/// Opens the counters of the kernel for the calling thread.
pub fn kernel_meter() -> Box<dyn Meter> {
    Box::new(KernelMeter::new())
}

/// The counters of a plan as whether there are any: a process cannot send a function, and those of the kernel are the only ones.
pub mod of_kernel {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::performance::{OpenMeter, kernel_meter};

    /// Writes whether there are counters.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<S: Serializer>(open: &Option<OpenMeter>, to: S) -> Result<S::Ok, S::Error> {
        open.is_some().serialize(to)
    }

    /// Reads whether there are counters, which are those of the kernel.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<OpenMeter>, D::Error> {
        Ok(bool::deserialize(from)?.then_some(kernel_meter))
    }
}

/// Returns the events by the name of their figure. Context switches are read from `/proc`, because only the superuser may count in the
/// kernel.
fn events() -> [(&'static str, Event); 7] {
    let tlb = Cache { which: WhichCache::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
    [
        (INSTRUCTIONS, Hardware::INSTRUCTIONS.into()),
        ("cycles_per_op", Hardware::CPU_CYCLES.into()),
        ("cache_misses_per_op", Hardware::CACHE_MISSES.into()),
        ("tlb_misses_per_op", tlb.into()),
        ("branches_per_op", Hardware::BRANCH_INSTRUCTIONS.into()),
        ("branch_misses_per_op", Hardware::BRANCH_MISSES.into()),
        ("page_faults_per_op", Software::PAGE_FAULTS.into()),
    ]
}

/// Figure of context switches per operation.
const SWITCHES: &str = "context_switches_per_op";

struct KernelMeter {
    counters: Vec<(&'static str, std::result::Result<Counter, String>)>,
    /// Context switches, and their number at the last start.
    switches: [u64; 2],
    starts: u64,
    /// What a start and a stop count themselves.
    empty: Vec<f64>,
}

impl KernelMeter {
    fn new() -> KernelMeter {
        // The hardware may have fewer counters than there are events: a pinned one does not share its counter with the others.
        let open = |(name, event): (&'static str, Event)| {
            let mut builder = Builder::new().kind(event);
            builder.pinned(name == INSTRUCTIONS);
            (name, builder.build().map_err(|e| reason(&e)))
        };
        let counters = events().into_iter().map(open).collect();
        let mut meter = KernelMeter { counters, switches: [0; 2], starts: 0, empty: Vec::new() };
        // The first pair touches pages.
        for _ in 0..2 {
            meter
                .counters
                .iter_mut()
                .flat_map(|(_, counter)| counter)
                .for_each(|counter| drop(counter.reset()));
            meter.start();
            meter.stop();
        }
        meter.empty = meter.values().into_iter().map(|value| value.unwrap_or(0.0)).collect();
        meter.counters.iter_mut().flat_map(|(_, counter)| counter).for_each(|counter| drop(counter.reset()));
        (meter.starts, meter.switches[0]) = (0, 0);
        meter
    }

    /// Returns the count of each counter.
    fn values(&mut self) -> Vec<std::result::Result<f64, String>> {
        let value = |counter: &mut Counter| {
            let read = counter.read_count_and_time().map_err(|e| reason(&e))?;
            whole(read.count, [read.time_enabled, read.time_running])
        };
        self.counters
            .iter_mut()
            .map(|(_, counter)| counter.as_mut().map_err(|why| why.clone()).and_then(value))
            .collect()
    }
}

impl Meter for KernelMeter {
    fn start(&mut self) {
        self.starts += 1;
        self.switches[1] = switches();
        // The order of stops is the reverse, so that the first counter, of instructions, counts least of the others' system calls.
        self.counters
            .iter_mut()
            .rev()
            .flat_map(|(_, counter)| counter)
            .for_each(|counter| drop(counter.enable()));
    }

    fn stop(&mut self) {
        self.counters.iter_mut().flat_map(|(_, counter)| counter).for_each(|counter| drop(counter.disable()));
        self.switches[0] += switches().saturating_sub(self.switches[1]);
    }

    fn counted(&mut self) -> Counted {
        let starts = self.starts as f64;
        let own: Vec<f64> = self.empty.iter().map(|empty| empty * starts).collect();
        let values =
            self.values().into_iter().zip(own).map(|(value, own)| value.map(|value| (value - own).max(0.0)));
        let named = self.counters.iter().map(|(name, _)| (*name).to_owned()).zip(values.collect::<Vec<_>>());
        named.chain([(SWITCHES.to_owned(), Ok(self.switches[0] as f64))]).collect()
    }
}

/// Returns a count; an error if the counter did not run all the time that it was enabled. What it would have counted in the rest of the
/// time is an estimate, and comparisons need a count.
fn whole(count: u64, [enabled, running]: [u64; 2]) -> std::result::Result<f64, String> {
    if running < enabled {
        let percent = 100.0 * running as f64 / enabled as f64;
        return Err(format!(
            "unavailable: the counter had the hardware for {percent:.0} % of the time, because the CPU has \
             fewer counters than events, or another program counts: end the other program"
        ));
    }
    Ok(count as f64)
}

/// Returns that nothing is counted in a rank with several timed threads: each has counters of its own, which nobody starts.
pub fn uncounted_threads() -> Counted {
    names().map(|name| (name, Err("unavailable: several threads of a rank are timed".to_owned()))).collect()
}

/// Returns the figures of a benchmark whose work is done by other processes than its ranks: the reason why there are none.
pub fn uncounted_processes() -> Figures {
    let why = "unavailable: the work is done by processes that ombx does not count";
    names().map(|name| (name, Figure::Unresolved(why.to_owned()))).collect()
}

/// Returns the names of the figures.
fn names() -> impl Iterator<Item = String> {
    events().map(|(name, _)| name).into_iter().chain([SWITCHES]).map(str::to_owned)
}

/// Returns how often this thread gave up or lost its CPU.
fn switches() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let number = |line: &str| line.split_once("ctxt_switches:")?.1.trim().parse::<u64>().ok();
    text.lines().filter_map(number).sum()
}

/// Returns why a counter cannot be opened or read.
fn reason(error: &io::Error) -> String {
    // A pinned counter that has no hardware has no value.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "unavailable: another program has the counters of the CPU: end it".into();
    }
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV) => {
            "unavailable: this CPU, or the virtual machine, has no such counter".into()
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            let level = regular_file::read_found_text("/proc/sys/kernel/perf_event_paranoid".as_ref(), 64)
                .unwrap_or_default();
            format!("unavailable: kernel.perf_event_paranoid is {}: set it to 2 or less", level.trim())
        }
        Some(Errno::NOSYS) => {
            "unavailable: the kernel, or a filter of system calls, has no perf_event_open".into()
        }
        _ => format!("unavailable: {error}"),
    }
}

/// Returns the figures of all ranks per operation, where each has counted in so many iterations: means over the ranks. A reason of one
/// rank is that of the figure.
pub fn figures<'c>(of_ranks: impl Iterator<Item = &'c (Counted, u64)>, operations: f64) -> Figures {
    let of_ranks: Vec<&(Counted, u64)> = of_ranks.collect();
    let Some((first, _)) = of_ranks.first() else { return Figures::new() };
    first.keys().map(|name| (name.clone(), figure(name, &of_ranks, operations))).collect()
}

/// Returns the mean of a figure over the ranks, or the reason of one that has none.
fn figure(name: &str, of_ranks: &[&(Counted, u64)], operations: f64) -> Figure {
    let of_rank = |(counted, iterations): &&(Counted, u64)| {
        let count = counted.get(name).cloned().unwrap_or_else(|| Err("unavailable on a rank".into()))?;
        Ok(count / (*iterations).max(1) as f64 / operations)
    };
    let values: std::result::Result<Vec<f64>, String> = of_ranks.iter().map(of_rank).collect();
    match values {
        Ok(values) => Figure::Value(values.iter().sum::<f64>() / values.len() as f64),
        Err(why) => Figure::Unresolved(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(value: std::result::Result<f64, &str>) -> (Counted, u64) {
        ([(INSTRUCTIONS.to_owned(), value.map_err(str::to_owned))].into(), 5)
    }

    #[test]
    fn what_is_not_counted_has_a_reason_for_each_figure() {
        let counted = uncounted_threads();
        assert!(counted.len() == 8 && counted.values().all(Result::is_err));
        let figures = uncounted_processes();
        assert!(figures.keys().eq(counted.keys()));
        assert!(figures.values().all(|figure| matches!(figure, Figure::Unresolved(_))));
    }

    #[test]
    fn a_counter_that_shared_the_hardware_has_no_count() {
        assert_eq!((whole(7, [0, 0]), whole(7, [900, 900])), (Ok(7.0), Ok(7.0)));
        let why = whole(7, [900, 300]).unwrap_err();
        assert!(why.starts_with("unavailable: ") && why.contains("33 %"), "{why}");
        assert!(whole(0, [900, 0]).unwrap_err().contains(" 0 %"));
    }

    #[test]
    fn figures_are_means_over_ranks_per_operation() {
        let both = figures([counted(Ok(100.0)), counted(Ok(300.0))].iter(), 2.0);
        assert_eq!(both[INSTRUCTIONS], Figure::Value(20.0));
        let one = figures([counted(Ok(100.0)), counted(Err("no"))].iter(), 2.0);
        assert_eq!(one[INSTRUCTIONS], Figure::Unresolved("no".into()));
        assert!(figures(std::iter::empty(), 1.0).is_empty());
    }

    #[test]
    fn this_thread_is_metered_or_a_reason_is_given() {
        let mut meter = kernel_meter();
        meter.start();
        let pages = vec![1_u8; 64 << 12];
        meter.stop();
        let untimed = vec![1_u8; 4096 << 12];
        let counted = meter.counted();
        assert_eq!((counted.len(), pages.len(), untimed.len()), (8, 64 << 12, 4096 << 12));
        for (name, value) in &counted {
            match value {
                Ok(count) => assert!(*count >= 0.0, "{name}"),
                Err(why) => assert!(why.starts_with("unavailable: "), "{name}: {why}"),
            }
        }
        // Some pages may have been used before.
        if let Ok(faults) = counted["page_faults_per_op"] {
            assert!(faults < 4096.0, "{counted:?}");
        }
    }
}
