//! Limits of the system on this process and those that it starts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{Resource, getrlimit, getuid},
};

use crate::{
    control_group::{Group, number},
    environment::read,
    machine::Files,
};

/// Bits of the effective capabilities that exempt a process from the limit of processes: `CAP_SYS_ADMIN` and `CAP_SYS_RESOURCE`.
const EXEMPT: u64 = 1 << 21 | 1 << 24;

/// Limits of this process, or what a job needs of each. `None` is no limit, or no need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes of the stack.
    pub stack: Option<u64>,
    /// Open files of a process.
    pub files: Option<u64>,
    /// Processes and threads that can be started in addition to those that run.
    pub processes: Option<u64>,
    /// Bytes of the address space.
    pub address_space: Option<u64>,
    /// Bytes of a file, which may be in shared memory.
    pub file_size: Option<u64>,
    /// Bytes of locked memory.
    pub locked_memory: Option<u64>,
}

impl Limits {
    /// Reads the limits of this process, of its user and of its container.
    pub fn here() -> Limits {
        let of = |resource| getrlimit(resource).current;
        let of_user = of(Resource::Nproc).filter(|_| !is_exempt());
        let of_user = of_user.map(|most| most.saturating_sub(running(getuid().as_raw())));
        Limits {
            stack: of(Resource::Stack),
            files: of(Resource::Nofile),
            processes: of_user
                .into_iter()
                .chain(left_in_groups(&Files::here(), "pids", processes_left))
                .min(),
            address_space: of(Resource::As),
            file_size: of(Resource::Fsize),
            locked_memory: of(Resource::Memlock),
        }
    }

    /// Returns the limit of the stack. Unlike [`Limits::here`] it needs no stack worth mentioning itself.
    pub fn stack() -> Option<u64> {
        getrlimit(Resource::Stack).current
    }

    /// Returns a phrase about each limit that is below `needs`: `24 open files are allowed (ulimit -n), but 60 are needed`.
    pub fn below(&self, needs: &Limits) -> Vec<String> {
        let (bytes, number) = (|n: u64| size(n), |n: u64| n.to_string());
        let all: [(_, _, &str, &dyn Fn(u64) -> String); 6] = [
            (self.stack, needs.stack, "of stack are allowed (ulimit -s)", &bytes),
            (self.files, needs.files, "open files are allowed (ulimit -n)", &number),
            (
                self.processes,
                needs.processes,
                "more processes and threads are allowed (ulimit -u, or the limit of the container)",
                &number,
            ),
            (self.address_space, needs.address_space, "of address space are allowed (ulimit -v)", &bytes),
            (
                self.file_size,
                needs.file_size,
                "are allowed in a file or in shared memory (ulimit -f)",
                &bytes,
            ),
            (self.locked_memory, needs.locked_memory, "of locked memory are allowed (ulimit -l)", &bytes),
        ];
        let phrase =
            |(limit, need, what, shown): &(Option<u64>, Option<u64>, &str, &dyn Fn(u64) -> String)| {
                let (limit, need) = (limit.zip(*need)).filter(|(limit, need)| limit < need)?;
                Some(format!("{} {what}, but {} are needed", shown(limit), shown(need)))
            };
        all.iter().filter_map(phrase).collect()
    }
}

/// Memory that processes on this host can still allocate without swapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeMemory {
    /// Bytes.
    pub bytes: u64,
    /// Whether a control group, as of a container or of a batch job, leaves less than the host has.
    pub is_limited: bool,
}

impl FreeMemory {
    /// Reads the memory of the host and the limits of the control groups of this process; `None` if the kernel does not say.
    pub fn here() -> Option<FreeMemory> {
        let of_host = field(&read("/proc/meminfo"), "MemAvailable:")
            .and_then(|line| line.strip_suffix("kB")?.trim().parse::<u64>().ok())
            .map(|kib| kib * 1024);
        let of_groups = left_in_groups(&Files::here(), "memory", memory_left);
        let bytes = of_host.into_iter().chain(of_groups).min()?;
        Some(FreeMemory { bytes, is_limited: of_host.is_none_or(|of_host| bytes < of_host) })
    }
}

/// Number of processes that the kernel had killed for their memory, at one time, in the control group of each of some processes. What it
/// kills elsewhere on the host is not theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KilledForMemory(BTreeMap<PathBuf, u64>);

impl Default for KilledForMemory {
    /// Reads the number of the control group of this process.
    fn default() -> KilledForMemory {
        KilledForMemory::among([std::process::id().into()])
    }
}

impl KilledForMemory {
    /// Reads the numbers of the control groups of these processes.
    pub fn among(processes: impl IntoIterator<Item = u64>) -> KilledForMemory {
        let files = Files::here();
        let of_process = |pid: u64| Group::of_process(&files, &pid.to_string(), "memory");
        let groups: BTreeSet<Group> = processes.into_iter().flat_map(of_process).collect();
        KilledForMemory(groups.iter().filter_map(killed_in).collect())
    }

    /// Returns a clause that says so if the kernel has killed more processes since; else nothing.
    pub fn since(&self) -> &'static str {
        let has_grown = |(file, before): (&PathBuf, &u64)| killed(file).is_some_and(|now| now > *before);
        if self.0.iter().any(has_grown) {
            "; the kernel killed a process of these ranks' container or batch job because its memory was \
             used up: choose smaller --sizes or fewer ranks, or ask for more memory"
        } else {
            ""
        }
    }
}

/// Returns the file with the number of killed processes of a group, and the number. A container sees its own group at the top. The group
/// of a whole host says nothing about a job.
fn killed_in(Group { top, directory }: &Group) -> Option<(PathBuf, u64)> {
    let visible = directory.ancestors().find(|directory| directory.join("cgroup.procs").exists())?;
    let is_host = directory == top && top.join("release_agent").exists();
    let of_version_1 = visible.join("memory.oom_control");
    let file = if of_version_1.exists() { of_version_1 } else { visible.join("memory.events") };
    let number = killed(&file).filter(|_| !is_host && visible.starts_with(top))?;
    Some((file, number))
}

/// Returns the number of killed processes that a file of a group names.
fn killed(file: &Path) -> Option<u64> {
    field(&fs::read_to_string(file).ok()?, "oom_kill ")?.parse().ok()
}

/// Returns whether an error says that the system allows no further process, thread or open file.
pub fn is_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || is_of_files(error)
}

fn is_of_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::MFILE.raw_os_error())
}

/// Returns the words of an error about a process or thread that cannot be started, with the limit that prevents it.
pub fn start_error(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::WouldBlock => {
            ". The limit of processes and threads is reached: see ulimit -u, and pids.max of the container"
        }
        io::ErrorKind::OutOfMemory => ". Memory is short: see ulimit -v, and the limit of the container",
        _ if is_of_files(error) => ". The limit of open files is reached: see ulimit -n",
        _ => "",
    };
    format!("{error}{advice}")
}

/// Returns a size rounded down to a whole unit.
fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Returns whether the kernel applies no limit of processes to this one.
fn is_exempt() -> bool {
    let status = read("/proc/self/status");
    let capabilities = field(&status, "CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    capabilities.is_some_and(|set| set & EXEMPT != 0)
}

/// Returns the number of processes and threads of a user.
fn running(user: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| threads_of(&entry, user)).sum()
}

/// Returns the number of threads of a process, from its directory in `/proc`; `None` if it is of another user.
fn threads_of(process: &fs::DirEntry, user: u32) -> Option<u64> {
    process.file_name().to_str()?.parse::<u32>().ok()?;
    let status = fs::read_to_string(process.path().join("status")).ok()?;
    let owner: u32 = field(&status, "Uid:")?.split_whitespace().next()?.parse().ok()?;
    (owner == user).then(|| field(&status, "Threads:")?.parse::<u64>().ok()).flatten()
}

/// Returns the least that the control groups of this process, and those above them, still allow of the resource of a controller.
fn left_in_groups(files: &Files, controller: &str, left: fn(&Path) -> Option<u64>) -> Option<u64> {
    let groups = Group::of_process(files, "self", controller);
    groups.iter().flat_map(Group::and_above).filter_map(left).min()
}

/// Returns the bytes of memory that the control groups of this process allow; `None` if they set no limit.
pub(crate) fn memory_limit(files: &Files) -> Option<u64> {
    left_in_groups(files, "memory", memory_limit_of)
}

/// Returns the limit of memory of a group.
fn memory_limit_of(group: &Path) -> Option<u64> {
    // Version 1, then version 2. Above `memory.high` the kernel takes memory back.
    ["memory.limit_in_bytes", "memory.max", "memory.high"].iter().filter_map(|name| number(group, name)).min()
}

/// Returns the processes that a group still allows.
fn processes_left(group: &Path) -> Option<u64> {
    Some(number(group, "pids.max")?.saturating_sub(number(group, "pids.current")?))
}

/// Returns the bytes that a group still allows. The kernel takes cached files out of memory when it is needed.
fn memory_left(group: &Path) -> Option<u64> {
    let limit = memory_limit_of(group)?;
    let (used, statistics) = match number(group, "memory.usage_in_bytes") {
        // Version 1.
        Some(used) => (used, ["total_inactive_file ", "total_active_file "]),
        None => (number(group, "memory.current")?, ["inactive_file ", "active_file "]),
    };
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let bytes = |name: &str| field(&text, name)?.parse::<u64>().ok();
    let cached: u64 = statistics.into_iter().filter_map(bytes).sum();
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use crate::{
        control_group::tests::{Tree, V2},
        limits::*,
    };

    #[test]
    fn limits_below_the_needs_are_named_with_both_numbers() {
        let limits =
            Limits { stack: Some(64 << 10), files: Some(24), processes: Some(7), ..Limits::default() };
        let needs = Limits {
            stack: Some(1 << 20),
            files: Some(24),
            processes: Some(8),
            address_space: Some(1 << 30),
            ..Limits::default()
        };
        let [stack, processes]: [String; 2] = limits.below(&needs).try_into().unwrap();
        assert_eq!(stack, "64 KiB of stack are allowed (ulimit -s), but 1 MiB are needed");
        assert!(processes.starts_with("7 more processes") && processes.ends_with("but 8 are needed"));
        assert!(Limits::default().below(&needs).is_empty() && limits.below(&Limits::default()).is_empty());
    }

    #[test]
    fn this_process_has_limits_and_counts_among_those_of_its_user() {
        let limits = Limits::here();
        assert!(limits.files.is_some_and(|files| files > 3) && limits.stack == Limits::stack());
        assert!(running(getuid().as_raw()) > 0);
        assert_eq!(running(u32::MAX), 0);
    }

    /// Returns a root whose groups have version 2, with this process in `/a/b`.
    fn tree(test: &str) -> Tree {
        Tree::new(test, &[("/proc/self/mountinfo", V2), ("/proc/self/cgroup", "0::/a/b\n")])
    }

    #[test]
    fn the_tightest_group_counts() {
        let tree = tree("pids");
        let left = || left_in_groups(&tree.files, "pids", processes_left);
        assert_eq!(left(), None);
        for (at, most, current) in [("", "20\n", "3\n"), ("/a", "9\n", "3\n"), ("/a/b", "max\n", "2\n")] {
            tree.write(&format!("/sys/fs/cgroup{at}/pids.max"), most);
            tree.write(&format!("/sys/fs/cgroup{at}/pids.current"), current);
        }
        assert_eq!(left(), Some(6));
    }

    #[test]
    fn memory_is_what_the_tightest_group_leaves_beside_cached_files() {
        let tree = tree("memory");
        let left = || left_in_groups(&tree.files, "memory", memory_left);
        let top = |name: &str, text: &str| tree.write(&format!("/sys/fs/cgroup/{name}"), text);
        let group = |name: &str, text: &str| tree.write(&format!("/sys/fs/cgroup/a/{name}"), text);
        assert_eq!(memory_limit(&tree.files), None);
        top("memory.max", "1000\n");
        top("memory.current", "900\n");
        top("memory.stat", "anon 700\ninactive_file 50\nactive_file 150\n");
        assert_eq!((left(), memory_limit(&tree.files)), (Some(300), Some(1000)));
        group("memory.max", "max\n");
        group("memory.high", "250\n");
        group("memory.current", "100\n");
        assert_eq!((left(), memory_limit(&tree.files)), (Some(150), Some(250)));
        group("memory.limit_in_bytes", "200\n");
        group("memory.usage_in_bytes", "190\n");
        group("memory.stat", "inactive_file 9\ntotal_inactive_file 20\ntotal_active_file 30\n");
        assert_eq!((left(), memory_limit(&tree.files)), (Some(60), Some(200)), "version 1");
        group("memory.usage_in_bytes", "900\n");
        assert_eq!(left(), Some(0));
    }

    #[test]
    fn this_host_has_free_memory_and_a_kernel_that_has_killed_nothing_since() {
        assert!(FreeMemory::here().is_some_and(|free| free.bytes > 1 << 20));
        assert_eq!(KilledForMemory::default().since(), "");
    }

    #[test]
    fn kills_count_in_the_group_of_the_ranks_alone() {
        let directory = ombx_testkit::Directory::new("killed");
        let top = directory.path();
        let (ours, others) = (top.join("job"), top.join("other"));
        let group = |directory: &Path| Group { top: top.to_owned(), directory: directory.to_owned() };
        let write = |group: &Path, kills: u64| {
            fs::write(group.join("memory.events"), format!("oom 9\noom_kill {kills}\n")).unwrap();
        };
        for group in [&ours, &others] {
            fs::create_dir_all(group).unwrap();
            fs::write(group.join("cgroup.procs"), "").unwrap();
            write(group, 2);
        }
        let before = KilledForMemory(killed_in(&group(&ours)).into_iter().collect());
        assert_eq!(before.0, [(ours.join("memory.events"), 2)].into());
        write(&others, 3);
        assert_eq!(before.since(), "");
        write(&ours, 3);
        assert!(before.since().contains("killed a process"));
        assert_eq!(killed_in(&group(&top.join("absent"))), None, "no group is visible");
        fs::write(top.join("cgroup.procs"), "").unwrap();
        write(top, 1);
        assert!(killed_in(&group(&top.join("absent"))).is_some(), "the group of a container");
        fs::write(top.join("release_agent"), "").unwrap();
        assert_eq!(killed_in(&group(top)), None, "the group of the host");
    }

    #[test]
    fn an_error_of_a_start_names_its_limit() {
        for (error, limit) in [(Errno::AGAIN, "ulimit -u"), (Errno::MFILE, "ulimit -n")] {
            let error = io::Error::from(error);
            assert!(start_error(&error).contains(limit) && is_limit(&error), "{error}");
        }
        let other = io::Error::from(Errno::NOENT);
        assert!(start_error(&other) == other.to_string() && !is_limit(&other));
    }
}
