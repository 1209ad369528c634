//! Where and when: host, CPUs, memory, the counters of a thread, the time of day and the environment worth keeping.

use std::{collections::BTreeMap, fs};

use crate::team::Place;

impl Place {
    /// Where this thread runs.
    pub fn here() -> Place {
        let cpus = field(&read("/proc/thread-self/status"), "Cpus_allowed_list:").unwrap_or_default();
        let online = parse_cpus(read("/sys/devices/system/cpu/online").trim()).len().max(1) as u32;
        let first = parse_cpus(&cpus).first().copied().unwrap_or(0);
        let governor =
            fs::read_to_string(format!("/sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"));
        Place { host: hostname(), cpus, online, governor: governor.ok().map(|g| g.trim().to_owned()) }
    }

    /// The CPUs as numbers.
    pub fn cpu_numbers(&self) -> Vec<u32> {
        parse_cpus(&self.cpus)
    }
}

/// This host's name.
pub fn hostname() -> String {
    let name = read("/proc/sys/kernel/hostname");
    if name.trim().is_empty() { "localhost".into() } else { name.trim().to_owned() }
}

/// Names this boot of this kernel, unlike that of any other host; the host's name where the kernel does not tell.
pub fn boot_id() -> String {
    let id = read("/proc/sys/kernel/random/boot_id");
    if id.trim().is_empty() { hostname() } else { id.trim().to_owned() }
}

/// More CPUs than any kernel has.
const MOST_CPUS: u32 = 1 << 16;

/// Reads a kernel list of CPUs, `0-3,8`; what is malformed is left out.
pub fn parse_cpus(list: &str) -> Vec<u32> {
    let range = |item: &str| {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?.min(MOST_CPUS))
    };
    list.split(',').filter_map(range).flatten().take(MOST_CPUS as usize).collect()
}

/// Bytes that could be allocated on this host without swapping; `None` where the kernel does not tell.
pub fn available_memory() -> Option<u64> {
    let line = field(&read("/proc/meminfo"), "MemAvailable:")?;
    line.strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Counters that show whether something else ran where we measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Involuntary context switches of this thread.
    pub preemptions: u64,
    /// Time that the hypervisor took from this host's CPUs, in clock ticks (usually 10 ms).
    pub stolen_ticks: u64,
    /// Time for which this thread could have run but something else had its CPU, in nanoseconds.
    pub waited_ns: u64,
}

impl Counters {
    /// The counters now; 0 where the kernel does not keep them.
    pub fn now() -> Counters {
        let switches = field(&read("/proc/thread-self/status"), "nonvoluntary_ctxt_switches:");
        let stat = read("/proc/stat");
        let steal = stat.lines().next().and_then(|line| line.split_whitespace().nth(8));
        let number = |text: Option<&str>| text.and_then(|t| t.parse().ok()).unwrap_or(0);
        // On a CPU, waiting for one, and how often: in nanoseconds.
        let schedule = read("/proc/thread-self/schedstat");
        let waited = schedule.split_whitespace().nth(1);
        Counters {
            preemptions: number(switches.as_deref()),
            stolen_ticks: number(steal),
            waited_ns: number(waited),
        }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Counters) -> Counters {
        Counters {
            preemptions: self.preemptions.saturating_sub(earlier.preemptions),
            stolen_ticks: self.stolen_ticks.saturating_sub(earlier.stolen_ticks),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
        }
    }

    /// Of two threads together.
    #[must_use]
    pub fn and(self, other: Counters) -> Counters {
        Counters {
            preemptions: self.preemptions.saturating_add(other.preemptions),
            stolen_ticks: self.stolen_ticks.saturating_add(other.stolen_ticks),
            waited_ns: self.waited_ns.saturating_add(other.waited_ns),
        }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.preemptions, self.stolen_ticks, self.waited_ns].iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Counters {
        let word =
            |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        Counters { preemptions: word(0), stolen_ticks: word(8), waited_ns: word(16) }
    }
}

/// UTC now, to the second, as `2026-01-01T00:00:00Z`.
pub fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A name for a run: the time to the nanosecond and the process, so that no two are alike.
pub fn run_id() -> String {
    format!("{:x}-{:x}", jiff::Timestamp::now().as_nanosecond(), std::process::id())
}

/// Variables that change what MPI or the network does; nothing else of the environment is kept.
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
/// Set by launchers for themselves: identifiers and addresses, not settings.
const NOT_KEPT_PREFIXES: [&str; 5] =
    ["OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_MCA_pmix", "OMPI_MCA_initial_wdir", "OMPI_MCA_shmem_RUNTIME"];

/// The variables of this process that are kept in results.
pub fn kept_variables() -> BTreeMap<String, String> {
    let kept = |name: &str| {
        let wanted = KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|p| name.starts_with(p));
        wanted && !NOT_KEPT_PREFIXES.iter().any(|p| name.starts_with(p))
    };
    let pairs = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    pairs.filter(|(name, _)| kept(name)).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_of_the_kernel() {
        assert_eq!(parse_cpus("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpus("5"), [5]);
        assert!(parse_cpus("").is_empty() && parse_cpus("x-y").is_empty());
    }

    #[test]
    fn this_thread_has_a_place_and_vitals() {
        let place = Place::here();
        assert!(!place.host.is_empty() && !place.cpu_numbers().is_empty(), "{place:?}");
        assert!(available_memory().is_some_and(|m| m > 1 << 20));
        let vitals = Counters { preemptions: 3, stolen_ticks: 9, waited_ns: 1 << 40 };
        assert_eq!(Counters::from_bytes(&vitals.to_bytes()), vitals);
    }

    #[test]
    fn a_timestamp_is_utc_to_the_second() {
        let now = timestamp();
        assert!(now.len() == 20 && now.ends_with('Z') && now.as_bytes()[10] == b'T', "{now}");
    }
}
