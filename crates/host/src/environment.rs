//! Facts of the environment: host, CPUs, memory, scheduler counters, time of day, and variables that results keep.

use std::{
    collections::BTreeMap,
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;
use ombx_record::{cpu_list::parse_cpus, result::Place};
use serde::{Deserialize, Serialize};

use crate::control_group::{self, QuotaStops};

/// Returns host and CPUs of the calling thread.
pub fn place_of_thread() -> Place {
    let cpus = field(&read("/proc/thread-self/status"), "Cpus_allowed_list:").unwrap_or_default();
    let online = parse_cpus(read("/sys/devices/system/cpu/online").trim()).len().max(1) as u32;
    let first = parse_cpus(&cpus).first().copied().unwrap_or(0);
    let governor = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"));
    let governor = governor.ok().map(|g| g.trim().to_owned());
    Place { host: hostname(), cpus, online, governor, quota: control_group::cpu_quota() }
}

/// Returns the name of this host, or `localhost`.
pub fn hostname() -> String {
    let name = read("/proc/sys/kernel/hostname");
    if name.trim().is_empty() { "localhost".into() } else { name.trim().to_owned() }
}

/// Returns the identifier of this boot, which differs between hosts. Falls back to the name of the host.
pub fn boot_id() -> String {
    let id = read("/proc/sys/kernel/random/boot_id");
    if id.trim().is_empty() { hostname() } else { id.trim().to_owned() }
}

/// Counters of the kernel that show disturbance by other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Involuntary context switches of this thread.
    pub preemptions: u64,
    /// Time that the hypervisor took from the CPUs of this thread, averaged over them, in nanoseconds.
    pub stolen_ns: u64,
    /// Time that this thread was runnable but waited for a CPU, in nanoseconds.
    pub waited_ns: u64,
    /// How often this thread was given a CPU. It has waited at most so often.
    pub slices: u64,
    /// Stops of the control groups of this process by their CPU quotas.
    pub stops: QuotaStops,
}

impl Counters {
    /// Reads the counters. Those that the kernel does not have are 0.
    pub fn now() -> Counters {
        let status = read("/proc/thread-self/status");
        let switches = field(&status, "nonvoluntary_ctxt_switches:");
        let cpus = parse_cpus(&field(&status, "Cpus_allowed_list:").unwrap_or_default());
        let number = |text: Option<&str>| text.and_then(|t| t.parse().ok()).unwrap_or(0);
        // Nanoseconds on a CPU, nanoseconds waiting for one, number of time slices.
        let schedule = read("/proc/thread-self/schedstat");
        let scheduled = |at: usize| schedule.split_whitespace().nth(at);
        Counters {
            preemptions: number(switches.as_deref()),
            stolen_ns: stolen_ns(&read("/proc/stat"), &cpus),
            waited_ns: number(scheduled(1)),
            slices: number(scheduled(2)),
            stops: QuotaStops::now(),
        }
    }

    /// Returns the increase since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Counters) -> Counters {
        Counters {
            preemptions: self.preemptions.saturating_sub(earlier.preemptions),
            stolen_ns: self.stolen_ns.saturating_sub(earlier.stolen_ns),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
            slices: self.slices.saturating_sub(earlier.slices),
            stops: self.stops.since(earlier.stops),
        }
    }

    /// Returns the sum over two threads. Of stolen time and of stops it returns the larger, because both may be on the same CPUs and in the
    /// same control group.
    #[must_use]
    pub fn and(self, other: Counters) -> Counters {
        Counters {
            preemptions: self.preemptions.saturating_add(other.preemptions),
            stolen_ns: self.stolen_ns.max(other.stolen_ns),
            waited_ns: self.waited_ns.saturating_add(other.waited_ns),
            slices: self.slices.saturating_add(other.slices),
            stops: self.stops.or(other.stops),
        }
    }
}

/// Length of a tick in `/proc/stat`, in nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Returns the stolen time of these CPUs in the text of `/proc/stat`, averaged over them, in nanoseconds.
fn stolen_ns(stat: &str, cpus: &[u32]) -> u64 {
    let ticks: u64 = stat.lines().filter_map(|line| stolen_ticks(line, cpus)).sum();
    ticks * TICK_NS / cpus.len().max(1) as u64
}

/// Returns the stolen ticks in a line of `/proc/stat`; `None` unless it is the line of one of these CPUs.
fn stolen_ticks(line: &str, cpus: &[u32]) -> Option<u64> {
    let mut words = line.split_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse::<u32>().ok()?;
    let ticks = words.nth(7)?.parse::<u64>().ok()?;
    cpus.contains(&cpu).then_some(ticks)
}

/// Returns the time of a clock, which may be wrong by thousands of years: within 1970 and 9999.
fn date(clock: SystemTime) -> Timestamp {
    Timestamp::try_from(clock.max(UNIX_EPOCH)).unwrap_or(Timestamp::MAX)
}

/// Returns the time in UTC, to the second, as `2026-01-01T00:00:00Z`.
pub fn timestamp() -> String {
    date(SystemTime::now()).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a unique identifier of a run, from the time in nanoseconds and the process.
pub fn run_id() -> String {
    format!("{:x}-{:x}", date(SystemTime::now()).as_nanosecond(), std::process::id())
}

/// Prefixes of variables that configure MPI or the network. Results keep only these and [`KEPT`].
const KEPT_PREFIXES: [&str; 11] = [
    "UCX_",
    "FI_",
    "OMPI_MCA_",
    "PRTE_MCA_",
    "MPIR_CVAR_",
    "MPICH_",
    "I_MPI_",
    "MV2_",
    "PSM2_",
    "PSM3_",
    "HCOLL_",
];
const KEPT: [&str; 8] = [
    "SLURM_JOB_ID",
    "SLURM_NTASKS",
    "SLURM_JOB_NUM_NODES",
    "SLURM_CPU_BIND",
    "OMP_NUM_THREADS",
    "LD_PRELOAD",
    "HYDRA_BINDING",
    "MALLOC_ARENA_MAX",
];
/// Prefixes of variables that launchers set for themselves: identifiers and addresses, not settings.
const NOT_KEPT_PREFIXES: [&str; 8] = [
    "OMPI_MCA_orte_",
    "OMPI_MCA_ess_",
    "OMPI_MCA_pmix",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_shmem_RUNTIME",
    "I_MPI_HYDRA_UUID",
    "I_MPI_INFO_",
    "I_MPI_PIN_INFO",
];

/// Returns the variables of this process that results keep.
pub fn kept_variables() -> BTreeMap<String, String> {
    let pairs = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    pairs.filter(|(name, _)| is_kept(name)).collect()
}

/// Returns whether results keep a variable.
fn is_kept(name: &str) -> bool {
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    (KEPT.contains(&name) || starts_with(&KEPT_PREFIXES)) && !starts_with(&NOT_KEPT_PREFIXES)
}

/// Returns the text of a file of the kernel; an empty one if it cannot be read.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use crate::environment::*;

    #[test]
    fn cpu_lists_of_the_kernel_are_parsed() {
        assert_eq!(parse_cpus("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpus("5"), [5]);
        assert!(parse_cpus("").is_empty() && parse_cpus("x-y").is_empty());
    }

    #[test]
    fn settings_of_mpi_are_kept_and_identifiers_of_launches_are_not() {
        for name in ["I_MPI_FABRICS", "OMPI_MCA_btl", "UCX_TLS", "LD_PRELOAD"] {
            assert!(is_kept(name), "{name}");
        }
        // Launches with different values would not be launches of one result.
        for name in ["I_MPI_HYDRA_UUID", "I_MPI_INFO_FLGC", "OMPI_MCA_orte_hnp_uri", "PATH"] {
            assert!(!is_kept(name), "{name}");
        }
    }

    #[test]
    fn a_clock_that_is_wrong_has_a_date() {
        let year = std::time::Duration::from_secs(365 * 86_400);
        for clock in [UNIX_EPOCH + year * 100_000, UNIX_EPOCH + year, UNIX_EPOCH - year * 100_000] {
            let text = date(clock).to_string();
            assert!(text.starts_with(|c: char| c.is_ascii_digit()), "{text}");
        }
    }

    #[test]
    fn this_thread_has_a_place() {
        let place = place_of_thread();
        assert!(!place.host.is_empty() && !place.cpu_numbers().is_empty(), "{place:?}");
    }

    #[test]
    fn only_time_stolen_from_the_given_cpus_counts() {
        let stat = "cpu 1 2 3 4 5 6 7 90 0 0\ncpu0 1 2 3 4 5 6 7 10 0 0\ncpu1 1 2 3 4 5 6 7 30 0 0\n\
                    cpu10 1 2 3 4 5 6 7 50 0 0\nintr 1 2 3 4 5 6 7 8 9";
        assert_eq!(stolen_ns(stat, &[1]), 300_000_000);
        assert_eq!(stolen_ns(stat, &[0, 1]), 200_000_000);
        assert_eq!(stolen_ns(stat, &[7]), 0);
        assert_eq!(stolen_ns("", &[]), 0);
    }

    #[test]
    fn threads_on_the_same_cpus_count_stolen_time_once() {
        let one = Counters {
            preemptions: 1,
            stolen_ns: 5,
            waited_ns: 2,
            slices: 3,
            stops: QuotaStops { number: 7, ns: 8 },
        };
        let both = one.and(Counters { stolen_ns: 4, ..one });
        assert_eq!(both, Counters { preemptions: 2, stolen_ns: 5, waited_ns: 4, slices: 6, ..one });
    }

    #[test]
    fn a_timestamp_is_utc_to_the_second() {
        let now = timestamp();
        assert!(now.len() == 20 && now.ends_with('Z') && now.as_bytes()[10] == b'T', "{now}");
    }
}
