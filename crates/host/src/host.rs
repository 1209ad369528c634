//! Properties of a host that disturb measurements: limits, shared memory, load, kernel settings.

use std::{fs, thread::sleep, time::Duration};

use ombx_record::{
    result::{Level, Mark, MarkCode},
    unit::Bytes,
};

use crate::{environment::read, limits::Limits};

/// Time over which load is measured.
const LOAD_TIME: Duration = Duration::from_millis(400);
/// Tolerated part of CPU time that other processes use.
const MAX_FOREIGN_PART: f64 = 0.05;
/// Tolerated part of CPU time that a hypervisor takes.
const MAX_STOLEN_PART: f64 = 0.01;
/// Minimum stack size in bytes; some libraries overflow smaller stacks.
const MIN_STACK: u64 = 2 << 20;
/// Open files that a rank may need in addition to those for other ranks.
const MIN_FILES: u64 = 256;
/// Minimum free shared memory per rank in bytes, for windows of large messages.
pub const MIN_SHARED: u64 = 64 << 20;

/// Returns how many processes there were for each of `cpus` CPUs in the last minute, at least 1: what runs takes so many times longer.
pub fn processes_per_cpu(cpus: u32) -> u32 {
    per_cpu(&read("/proc/loadavg"), cpus)
}

fn per_cpu(loads: &str, cpus: u32) -> u32 {
    let load = loads.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(0.0);
    ((load / f64::from(cpus.max(1))).round() as u32).max(1)
}

/// Facts of this host. A fact that the kernel does not provide is `None` and causes no notice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostState {
    /// Limits of the system.
    pub limits: Limits,
    /// Whether the host has an RDMA adapter, which needs locked memory.
    pub rdma: bool,
    /// Free bytes in `/dev/shm`.
    pub shared_free: Option<u64>,
    /// Part of CPU time that other processes used while this process slept.
    pub foreign: Option<f64>,
    /// Part of CPU time that a hypervisor took in that time.
    pub stolen: Option<f64>,
    /// Whether a page fault may wait for compaction into huge pages.
    pub compacts: bool,
    /// Whether processes are forbidden to read the memory of their siblings.
    pub traced: bool,
}

impl HostState {
    /// Collects the facts of this host, which takes 0.4 s. The caller provides the free shared memory.
    pub fn here(shared_free: Option<u64>) -> HostState {
        let before = Ticks::read(&read("/proc/stat"));
        sleep(LOAD_TIME);
        let spent = before.zip(Ticks::read(&read("/proc/stat"))).map(|(a, b)| b.since(a));
        let scope = read("/proc/sys/kernel/yama/ptrace_scope").trim().parse::<u32>().unwrap_or(0);
        let privileged = effective(&read("/proc/self/status")) == Some(0);
        HostState {
            limits: Limits::here(),
            rdma: has_rdma(),
            shared_free,
            foreign: spent.map(|spent| spent.part(spent.busy)),
            stolen: spent.map(|spent| spent.part(spent.stolen)),
            compacts: read("/sys/kernel/mm/transparent_hugepage/defrag").contains("[always]"),
            traced: scope >= 3 || scope >= 1 && !privileged,
        }
    }

    /// Returns a notice for each problem that `ranks` ranks on this host may have.
    pub fn problems(&self, ranks: u32) -> Vec<Mark> {
        let mut notices = Vec::new();
        let mut add =
            |code, short: String, cause: &str| notices.push(Mark::new(code, short, cause).at(Level::Caution));
        let bytes = |n: u64| Bytes(n >> 20 << 20).to_string();
        if let Some(limit) = self.limits.locked_memory.filter(|_| self.rdma) {
            let short = format!("{} KiB may be locked", limit >> 10);
            add(MarkCode::LockedMemory, short, "RDMA registers memory by locking it");
        }
        let needed = MIN_FILES + 4 * u64::from(ranks);
        if let Some(limit) = self.limits.files.filter(|limit| *limit < needed) {
            add(MarkCode::OpenFiles, format!("{limit} open files"), "a rank may need several per other rank");
        }
        if let Some(limit) = self.limits.stack.filter(|limit| *limit < MIN_STACK) {
            let short = format!("a stack of {} KiB", limit >> 10);
            add(MarkCode::Stack, short, "some libraries overflow small stacks");
        }
        let needed = MIN_SHARED * u64::from(ranks);
        if let Some(free) = self.shared_free.filter(|free| ranks > 1 && *free < needed) {
            let short = format!("{} free in /dev/shm", bytes(free));
            add(MarkCode::SharedMemory, short, "ranks of one host communicate through it");
        }
        if let Some(part) = self.foreign.filter(|part| *part > MAX_FOREIGN_PART) {
            let short = format!("{:.0}% of the CPUs are busy", part * 100.0);
            add(MarkCode::ForeignLoad, short, "other processes run here");
        }
        if let Some(part) = self.stolen.filter(|part| *part > MAX_STOLEN_PART) {
            let short = format!("{:.0}% of the CPU time is stolen", part * 100.0);
            add(MarkCode::Stolen, short, "the hypervisor gives it to other machines");
        }
        if self.compacts {
            add(MarkCode::HugePages, "page faults may wait for huge pages".into(), "avoid compaction");
        }
        if self.traced && ranks > 1 {
            let short = "ranks cannot read each other's memory".into();
            add(MarkCode::PtraceScope, short, "large messages inside a host are copied twice");
        }
        notices
    }
}

/// Returns whether this host has an RDMA adapter.
pub fn has_rdma() -> bool {
    fs::read_dir("/sys/class/infiniband").is_ok_and(|mut adapters| adapters.next().is_some())
}

/// Time of all CPUs, in kernel ticks.
#[derive(Clone, Copy)]
struct Ticks {
    busy: f64,
    stolen: f64,
    all: f64,
}

impl Ticks {
    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    fn read(stat: &str) -> Option<Ticks> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<f64> = fields.take(8).filter_map(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks.try_into().ok()?;
        let busy = user + nice + system + irq + softirq;
        Some(Ticks { busy, stolen, all: busy + stolen + idle + waiting })
    }

    fn since(self, earlier: Ticks) -> Ticks {
        Ticks {
            busy: self.busy - earlier.busy,
            stolen: self.stolen - earlier.stolen,
            all: self.all - earlier.all,
        }
    }

    fn part(self, of: f64) -> f64 {
        of / self.all.max(1.0)
    }
}

/// Returns the effective user of `/proc/self/status`.
fn effective(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::host::*;

    fn codes(host: &HostState, ranks: u32) -> Vec<String> {
        host.problems(ranks).into_iter().map(|notice| notice.code.to_string()).collect()
    }

    #[test]
    fn a_host_that_is_busy_needs_more_time() {
        let of = |loads| per_cpu(loads, 2);
        assert_eq!(
            [of("0.13 0.64 1.52 1/234 5"), of("3.1 1 1 1/2 3"), of("27.4 29 30 9/800 1"), of("")],
            [1, 2, 14, 1]
        );
        assert!(processes_per_cpu(1) >= 1);
    }

    #[test]
    fn a_host_without_problems_has_no_notice() {
        let good = HostState {
            limits: Limits {
                files: Some(1024),
                stack: Some(8 << 20),
                locked_memory: Some(8 << 20),
                ..Limits::default()
            },
            shared_free: Some(1 << 30),
            foreign: Some(0.01),
            stolen: Some(0.0),
            ..HostState::default()
        };
        assert_eq!((codes(&good, 2), codes(&HostState::default(), 2)), (vec![], vec![]));
        assert_eq!(codes(&good, 300), ["nofile", "shared_memory"]);
    }

    #[test]
    fn each_problem_has_a_notice() {
        let bad = HostState {
            limits: Limits {
                locked_memory: Some(64 << 10),
                files: Some(64),
                stack: Some(64 << 10),
                ..Limits::default()
            },
            rdma: true,
            shared_free: Some(64 << 20),
            foreign: Some(0.5),
            stolen: Some(0.2),
            compacts: true,
            traced: true,
        };
        let all = [
            "memlock",
            "nofile",
            "stack",
            "shared_memory",
            "foreign_load",
            "stolen",
            "huge_pages",
            "ptrace_scope",
        ];
        assert_eq!(codes(&bad, 2), all);
        assert!(!codes(&bad, 1).contains(&"ptrace_scope".into()), "one rank has no sibling");
    }

    #[test]
    fn files_of_the_kernel_are_parsed() {
        let (a, b) = ("cpu  100 0 50 800 50 0 0 0 0 0\n", "cpu  150 0 70 820 50 0 0 10 0 0\n");
        let spent = Ticks::read(b).unwrap().since(Ticks::read(a).unwrap());
        assert_eq!((spent.part(spent.busy), spent.part(spent.stolen)), (0.7, 0.1));
        assert!(Ticks::read("cpu 1 2").is_none() && Ticks::read("").is_none());
        assert_eq!(effective("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some(0));
    }
}
