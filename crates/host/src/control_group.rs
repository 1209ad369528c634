//! Control groups of a process: their directories, their quotas of CPU time, and how often a quota stopped their processes.
//!
//! Sources: the kernel's documents `admin-guide/cgroup-v2` and `scheduler/sched-bwc`, cgroups(7), and proc(5) for `mountinfo`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use ombx_record::result::CpuQuota;
use serde::{Deserialize, Serialize};

use crate::machine::Files;

/// The groups of this process, in each hierarchy.
pub(crate) const MEMBERSHIP: &str = "/proc/self/cgroup";

/// A control group that has a controller, and the top of its hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    /// Directory of the highest group that this process can see.
    pub(crate) top: PathBuf,
    /// Directory of the group; of the highest visible one if the group itself is not visible.
    pub(crate) directory: PathBuf,
}

impl Group {
    /// Returns the groups of a process (`self`, or its number) that may have this controller: that of version 1, and that of version 2. A
    /// controller is in one of them.
    pub(crate) fn of_process(files: &Files, process: &str, controller: &str) -> Vec<Group> {
        let memberships = files.read(&format!("/proc/{process}/cgroup")).unwrap_or_default();
        let mounts = files.read("/proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        let group = |line: &str| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_of_it = |mount: &&Mount<'_>| match controllers {
                "" => mount.kind == "cgroup2",
                list => {
                    mount.kind == "cgroup" && [list, mount.options].iter().all(|all| has(all, controller))
                }
            };
            // A container may see a hierarchy in several places, of which the first shows the most groups.
            let mut seen: Vec<&Mount<'_>> = mounts.iter().filter(is_of_it).collect();
            seen.sort_by_key(|mount| mount.root.len());
            let below = |mount: &&Mount<'_>| Some((mount.directory.clone(), mount.below(path)?));
            let (top, below) = seen
                .iter()
                .find_map(below)
                // The path of a group outside the namespace says nothing: the top is what counts here.
                .or_else(|| Some((seen.first()?.directory.clone(), "")))?;
            let top = files.path(&top);
            Some(Group { directory: top.join(below), top })
        };
        memberships.lines().filter_map(group).collect()
    }

    /// Returns the directories of the group and of all above it that this process can see.
    pub(crate) fn and_above(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|directory| directory.starts_with(&self.top))
    }
}

/// A hierarchy of control groups in the file system.
struct Mount<'t> {
    /// Group that is at its top.
    root: &'t str,
    directory: String,
    /// `cgroup` of version 1, `cgroup2` of version 2.
    kind: &'t str,
    /// Options, among which version 1 has the names of its controllers.
    options: &'t str,
}

impl Mount<'_> {
    /// Parses a line of `mountinfo`; `None` unless it has all fields.
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (place, system) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut system = system.split(' ');
        let (root, directory) = (place.next()?, place.next()?);
        let (kind, options) = (system.next()?, system.nth(1)?);
        Some(Mount { root, directory: unescaped(directory), kind, options })
    }

    /// Returns the path of a group below the top of this mount; `None` if it is elsewhere.
    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        let below = path.strip_prefix(self.root.trim_end_matches('/'))?;
        let is_inside = below.is_empty() || below.starts_with('/') && !below.starts_with("/..");
        is_inside.then(|| below.trim_start_matches('/'))
    }
}

/// Returns whether a list with commas has a word.
fn has(list: &str, word: &str) -> bool {
    list.split(',').any(|one| one == word)
}

/// Returns a path of `mountinfo`, in which the kernel writes blanks, tabs, line ends and backslashes as octal numbers.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (escape, character)| path.replace(escape, character))
}

/// Returns the number in a file of a group; `None` for `max`, which is no limit.
pub(crate) fn number(group: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
}

/// Returns the smallest CPU quota of the control groups of this process; `None` if they have none.
pub fn cpu_quota() -> Option<CpuQuota> {
    cpu_quota_in(&Files::here())
}

pub(crate) fn cpu_quota_in(files: &Files) -> Option<CpuQuota> {
    let groups = Group::of_process(files, "self", "cpu");
    groups.iter().flat_map(Group::and_above).filter_map(quota_of).min()
}

/// Returns the quota of one group.
fn quota_of(group: &Path) -> Option<CpuQuota> {
    // Version 2: `150000 100000`, or `max 100000` without a quota.
    let both = fs::read_to_string(group.join("cpu.max")).ok();
    let (quota, period) = match both.as_deref().and_then(|both| both.trim().split_once(' ')) {
        Some((quota, period)) => (quota.parse().ok()?, period.parse().ok()?),
        // Version 1: the quota is -1 if there is none.
        None => (number(group, "cpu.cfs_quota_us")?, number(group, "cpu.cfs_period_us")?),
    };
    CpuQuota::new(quota, period)
}

/// How often the quotas of control groups were used up, so that the kernel stopped their processes until the next period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuotaStops {
    /// Number of periods in which processes were stopped.
    pub number: u64,
    /// Time for which processes were stopped, added over CPUs, in nanoseconds.
    pub ns: u64,
}

impl QuotaStops {
    /// Reads the counters of the groups of this process, and of those above it. Without them they are 0.
    pub(crate) fn now() -> QuotaStops {
        // The groups of a rank stay the same, and so do the files.
        static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
        QuotaStops::in_files(FILES.get_or_init(|| QuotaStops::files(&Files::here())))
    }

    /// Returns the files with counters, also of groups that have no quota yet.
    fn files(files: &Files) -> Vec<PathBuf> {
        let groups = Group::of_process(files, "self", "cpu");
        let all = groups.iter().flat_map(Group::and_above).map(|group| group.join("cpu.stat"));
        all.filter(|file| QuotaStops::parse(&fs::read_to_string(file).unwrap_or_default()).is_some())
            .collect()
    }

    /// Returns the sum of the counters in these files: a stop is counted in the group whose quota was used up.
    fn in_files(files: &[PathBuf]) -> QuotaStops {
        let read = |file: &PathBuf| QuotaStops::parse(&fs::read_to_string(file).ok()?);
        files.iter().filter_map(read).fold(QuotaStops::default(), |sum, one| QuotaStops {
            number: sum.number.saturating_add(one.number),
            ns: sum.ns.saturating_add(one.ns),
        })
    }

    /// Parses the text of `cpu.stat`; `None` if it has no such counters, as in the highest group of version 2.
    fn parse(text: &str) -> Option<QuotaStops> {
        let value = |name: &str| {
            let values = text.lines().filter_map(|line| line.split_once(' '));
            values.filter(|(field, _)| *field == name).find_map(|(_, value)| value.trim().parse::<u64>().ok())
        };
        // Version 1 counts nanoseconds, version 2 microseconds.
        let ns =
            value("throttled_time").or_else(|| value("throttled_usec").map(|us| us.saturating_mul(1000)))?;
        Some(QuotaStops { number: value("nr_throttled")?, ns })
    }

    /// Returns the increase since `earlier`.
    #[must_use]
    pub(crate) fn since(self, earlier: QuotaStops) -> QuotaStops {
        QuotaStops {
            number: self.number.saturating_sub(earlier.number),
            ns: self.ns.saturating_sub(earlier.ns),
        }
    }

    /// Returns the larger counters of two processes, which may be in the same group.
    #[must_use]
    pub(crate) fn or(self, other: QuotaStops) -> QuotaStops {
        QuotaStops { number: self.number.max(other.number), ns: self.ns.max(other.ns) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ombx_testkit::Directory;

    use crate::control_group::*;

    /// A root with control groups and this process in them. Dropping it removes its files.
    pub(crate) struct Tree {
        pub(crate) files: Files,
        _directory: Directory,
    }

    impl Tree {
        /// Writes these files.
        pub(crate) fn new(test: &str, texts: &[(&str, &str)]) -> Tree {
            let directory = Directory::new(&format!("groups-{test}"));
            let tree = Tree { files: Files { root: directory.path().to_owned() }, _directory: directory };
            texts.iter().for_each(|(path, text)| tree.write(path, text));
            tree
        }

        pub(crate) fn write(&self, path: &str, text: &str) {
            let path = self.files.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn quota(&self) -> Option<String> {
            cpu_quota_in(&self.files).map(|quota| quota.to_string())
        }

        fn stops(&self) -> [u64; 2] {
            let stops = QuotaStops::in_files(&QuotaStops::files(&self.files));
            [stops.number, stops.ns]
        }
    }

    const MOUNTS: &str = "/proc/self/mountinfo";
    /// Mounts of systems with version 2, with version 1, and with both.
    pub(crate) const V2: &str =
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "33 32 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      34 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const UNIFIED: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_smallest_quota_of_all_groups_counts() {
        let tree = Tree::new("v2", &[(MOUNTS, V2), (MEMBERSHIP, "0::/job/step\n")]);
        assert_eq!(tree.quota(), None, "no group has files");
        tree.write("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
        assert_eq!(tree.quota(), None, "no limit");
        tree.write("/sys/fs/cgroup/job/cpu.max", "75000 50000\n");
        assert_eq!(tree.quota().as_deref(), Some("1.5 CPUs"));
        tree.write("/sys/fs/cgroup/job/step/cpu.max", "400000 100000\n");
        assert_eq!(tree.quota().as_deref(), Some("1.5 CPUs"), "that of the group above is smaller");
        tree.write("/sys/fs/cgroup/job/step/cpu.max", "100000 100000\n");
        assert_eq!(tree.quota().as_deref(), Some("1 CPU"));
        tree.write("/sys/fs/cgroup/other/cpu.max", "1000 100000\n");
        assert_eq!(tree.quota().as_deref(), Some("1 CPU"), "the group of others");
    }

    #[test]
    fn version_1_has_a_hierarchy_for_the_controller() {
        let tree = Tree::new("v1", &[(MOUNTS, V1), (MEMBERSHIP, "4:memory:/m\n3:cpu,cpuacct:/docker/a\n")]);
        tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "-1\n");
        tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n");
        assert_eq!(tree.quota(), None);
        tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "250000\n");
        tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
        assert_eq!(tree.quota().as_deref(), Some("2.5 CPUs"));
    }

    #[test]
    fn a_hybrid_system_has_the_controller_in_one_of_both() {
        let mounts = format!("{V1}{UNIFIED}");
        let tree = Tree::new(
            "hybrid",
            &[(MOUNTS, &mounts), (MEMBERSHIP, "3:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/b\n")],
        );
        tree.write("/sys/fs/cgroup/unified/b/cpu.max", "50000 100000\n");
        assert_eq!(tree.quota().as_deref(), Some("0.5 CPUs"));
        tree.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "20000\n");
        tree.write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
        assert_eq!(tree.quota().as_deref(), Some("0.2 CPUs"));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top() {
        let quota = |mount: &str, membership: &str| {
            let tree = Tree::new("container", &[(MOUNTS, mount), (MEMBERSHIP, membership)]);
            tree.write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
            tree.quota()
        };
        let mount = |root: &str| format!("30 23 0:26 {root} /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
        let expected = Some("1.5 CPUs".to_owned());
        // With a namespace; a mount of the host's hierarchy; a process that was moved in from outside; a namespace with an older mount.
        assert_eq!(quota(&mount("/"), "0::/\n"), expected);
        assert_eq!(quota(&mount("/kubepods/pod7"), "0::/kubepods/pod7\n"), expected);
        assert_eq!(quota(&mount("/"), "0::/../../other\n"), expected);
        assert_eq!(quota(&mount("/../.."), "0::/\n"), expected);
        assert_eq!(
            quota(&mount("/kubepods/pod"), "0::/kubepods/pod7\n"),
            expected,
            "a name that begins alike"
        );
    }

    #[test]
    fn a_mount_may_have_blanks_in_its_path() {
        let mount = "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\nshort line\n";
        let tree = Tree::new("blanks", &[(MOUNTS, mount), (MEMBERSHIP, "0::/a\nbroken\n")]);
        tree.write("/my groups/a/cpu.max", "100000 50000\n");
        assert_eq!(tree.quota().as_deref(), Some("2 CPUs"));
    }

    #[test]
    fn stops_of_all_groups_are_added() {
        let tree = Tree::new("stops", &[(MOUNTS, V2), (MEMBERSHIP, "0::/job/step\n")]);
        let of = |number: u64, us: u64| {
            format!("usage_usec 9\nnr_periods 50\nnr_throttled {number}\nthrottled_usec {us}\n")
        };
        assert_eq!(tree.stops(), [0, 0]);
        tree.write("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        tree.write("/sys/fs/cgroup/job/cpu.stat", &of(3, 20));
        tree.write("/sys/fs/cgroup/job/step/cpu.stat", &of(4, 100));
        assert_eq!(tree.stops(), [7, 120_000]);
        tree.write("/sys/fs/cgroup/job/step/cpu.stat", "nr_periods 5\nnr_throttled 2\nthrottled_time 1500\n");
        assert_eq!(tree.stops(), [5, 21_500], "version 1 counts nanoseconds");
        let (before, after) = (QuotaStops { number: 5, ns: 10 }, QuotaStops { number: 7, ns: 25 });
        assert_eq!(after.since(before), QuotaStops { number: 2, ns: 15 });
        assert_eq!(before.since(after), QuotaStops::default());
        assert_eq!(before.or(QuotaStops { number: 1, ns: 12 }), QuotaStops { number: 5, ns: 12 });
    }

    #[test]
    fn files_that_do_not_follow_the_format_have_no_quota() {
        for text in ["", "x y\n", "100000\n", "0 100000\n", "100000 0\n"] {
            let tree = Tree::new(
                "broken",
                &[(MOUNTS, V2), (MEMBERSHIP, "0::/\n"), ("/sys/fs/cgroup/cpu.max", text)],
            );
            assert_eq!(tree.quota(), None, "{text:?}");
        }
    }
}
