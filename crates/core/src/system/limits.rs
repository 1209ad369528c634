//! Limits of the system on this process and those that it starts.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{Resource, getrlimit, getuid},
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
            processes: of_user.into_iter().chain(left_in_container()).min(),
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
    let of_process = |entry: fs::DirEntry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let owner: u32 = field(&status, "Uid:")?.split_whitespace().next()?.parse().ok()?;
        (owner == user).then(|| field(&status, "Threads:")?.parse::<u64>().ok()).flatten()
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(of_process).sum()
}

/// Returns the processes and threads that the control groups of this process still allow.
fn left_in_container() -> Option<u64> {
    let groups = read("/proc/self/cgroup");
    groups.lines().filter_map(directory_of_group).filter_map(|(top, group)| left_in(&top, &group)).min()
}

/// Returns the directories of the hierarchy and of the group of a line of `/proc/self/cgroup` that may limit processes.
fn directory_of_group(line: &str) -> Option<(PathBuf, PathBuf)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let top = match controllers {
        "" => "/sys/fs/cgroup",
        list if list.split(',').any(|controller| controller == "pids") => "/sys/fs/cgroup/pids",
        _ => return None,
    };
    Some((top.into(), Path::new(top).join(path.trim_start_matches('/'))))
}

/// Returns the smallest number of processes that a group and those above it still allow.
fn left_in(top: &Path, group: &Path) -> Option<u64> {
    let left = |directory: &Path| {
        let number = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u64>().ok();
        Some(number("pids.max")?.saturating_sub(number("pids.current")?))
    };
    group.ancestors().take_while(|directory| directory.starts_with(top)).filter_map(left).min()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_tightest_group_counts() {
        let directory = crate::testkit::Directory::new("limits");
        let top = directory.path();
        let group = top.join("a/b");
        fs::create_dir_all(&group).unwrap();
        let write = |at: &str, name: &str, text: &str| fs::write(top.join(at).join(name), text).unwrap();
        assert_eq!(left_in(top, &group), None);
        for (at, most, current) in [("", "20\n", "3\n"), ("a", "9\n", "3\n"), ("a/b", "max\n", "2\n")] {
            write(at, "pids.max", most);
            write(at, "pids.current", current);
        }
        assert_eq!(left_in(top, &group), Some(6));
        let line = directory_of_group("8:pids:/a").unwrap();
        assert_eq!(line.1, Path::new("/sys/fs/cgroup/pids/a"));
        assert_eq!(directory_of_group("0::/").unwrap().1, Path::new("/sys/fs/cgroup/"));
        assert_eq!(directory_of_group("4:memory:/a"), None);
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
