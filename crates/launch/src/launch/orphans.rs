//! Orphans: processes of a job that outlive their launcher. They become children of the launching process. Also the end of a
//! process with its descendants.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use ombx_host::{environment, since::Since};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use signal_hook::low_level::signal_name;

use ombx_record::event::RankProcess;

/// Maximum wait for killed processes. A process that waits for a device may take longer.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of processes above one that are looked at.
const MOST_ANCESTORS: usize = 100;
/// Time after which a launcher that has not connected its ranks is examined, and again after twice the time, and so on. A user waits 10 s for a
/// word at most: this time, one poll, and the look at the list of processes.
pub(super) const EXAMINATION: Duration = Duration::from_secs(8);
/// Maximum number of processes of a launcher that a message names.
const MOST_NAMED: usize = 4;
/// Interval between two looks at the list of processes.
const INTERVAL: Duration = Duration::from_millis(5);

/// Makes this process the parent of all orphans among its descendants. On kernels without this feature [`end`] finds none.
pub(super) fn adopt() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Kills all descendants of this process.
pub(super) fn end() {
    let since = Since::now();
    // The children of a killed process become children of this process.
    loop {
        let children = children_of(getpid());
        for child in &children {
            let _ = kill_process(*child, Signal::KILL);
            let _ = waitpid(Some(*child), WaitOptions::NOHANG);
        }
        if children.is_empty() || since.elapsed() > LIMIT {
            return;
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Kills a process and its descendants.
pub(super) fn end_family(root: Pid) {
    for pid in descendants(root).into_iter().chain([root]) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns the descendants of a process.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for (pid, parent) in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let (mut family, mut at) = (vec![root], 0);
    while let Some(pid) = family.get(at) {
        family.extend(children.remove(&pid.as_raw_nonzero().get()).unwrap_or_default());
        at += 1;
    }
    family.split_off(1)
}

/// Returns the processes above this one, its parent first.
pub(super) fn ancestors() -> Vec<Pid> {
    let above = |pid: &Pid| Pid::from_raw(parent(pid.as_raw_nonzero().get())?);
    std::iter::successors(Some(getpid()), above).skip(1).take(MOST_ANCESTORS).collect()
}

/// Returns a phrase about a launcher and its processes, as the kernel describes them.
pub(super) fn examined(launcher: Pid) -> String {
    let described = |pid: &Pid| {
        let number = pid.as_raw_nonzero().get();
        let state = after_name(number)?.split_whitespace().next()?.to_owned();
        let state = match state.as_str() {
            "R" => "runs",
            "S" => "sleeps",
            "D" => "waits for a device or a file",
            "T" | "t" => "is stopped",
            _ => "has ended",
        };
        Some(format!("{} ({number}) {state}", name(*pid)?))
    };
    let family = descendants(launcher);
    let mut others: Vec<String> = family.iter().filter_map(described).collect();
    let more = others.len().saturating_sub(MOST_NAMED);
    others.truncate(MOST_NAMED);
    if more > 0 {
        others.push(format!("{more} more"));
    }
    let own = described(&launcher).unwrap_or_else(|| "the launcher has ended".into());
    if others.is_empty() {
        format!("{own} and has no process")
    } else {
        format!("{own}; below it: {}", others.join(", "))
    }
}

/// Returns whether a launcher has started processes of which none is left: each without a child has ended.
pub(super) fn waits_for_ended(launcher: Pid) -> bool {
    let family = descendants(launcher);
    let parents: Vec<i32> = family.iter().filter_map(|pid| parent(pid.as_raw_nonzero().get())).collect();
    let mut last = family.iter().filter(|pid| !parents.contains(&pid.as_raw_nonzero().get())).peekable();
    last.peek().is_some() && last.all(has_ended)
}

fn children_of(one: Pid) -> Vec<Pid> {
    let of_one = |(pid, parent): (Pid, i32)| (parent == one.as_raw_nonzero().get()).then_some(pid);
    processes().filter_map(of_one).collect()
}

/// Returns all processes and their parents.
fn processes() -> impl Iterator<Item = (Pid, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((Pid::from_raw(pid)?, parent(pid)?)))
}

fn parent(pid: i32) -> Option<i32> {
    after_name(pid)?.split_whitespace().nth(1)?.parse().ok()
}

/// Returns whether a process has ended and its parent has not asked for its status.
fn has_ended(pid: &Pid) -> bool {
    after_name(pid.as_raw_nonzero().get()).is_some_and(|state| state.trim_start().starts_with('Z'))
}

/// Returns the name of a process, which it keeps when it has ended.
fn name(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    Some(stat.split_once('(')?.1.rsplit_once(')')?.0.to_owned())
}

/// Returns what the kernel says of a process after its name: its state, its parent and more.
fn after_name(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain any character.
    stat.rsplit_once(')').map(|(_, after)| after.to_owned())
}

/// Ranks that are being started.
pub(super) struct StartingRanks {
    launcher: Pid,
    /// Number of ranks of the job, if all are on this host.
    expected: Option<u32>,
    /// Largest and last number of ranks that ran.
    most: u32,
    last: u32,
}

impl StartingRanks {
    pub(super) fn new(launcher: Pid, expected: Option<u32>) -> StartingRanks {
        StartingRanks { launcher, expected, most: 0, last: 0 }
    }

    /// Returns whether a rank has ended: fewer run than have run, or than the job has, and no more than at the last call. A wrapper
    /// around ranks may hide all of them. Ranks that ended before the first call were not seen; a launcher that has noticed, and hangs
    /// in its own end, has only children that have ended, ranks among them.
    pub(super) fn is_one_missing(&mut self) -> bool {
        let program = identity("self");
        let is_rank = |pid: &Pid| identity(&pid.as_raw_nonzero().to_string()) == program;
        let family = descendants(self.launcher);
        let running = family.iter().filter(|pid| is_rank(pid)).count() as u32;
        let own = name(getpid());
        let all_ended = family.iter().all(has_ended) && family.iter().any(|pid| name(*pid) == own);
        self.is_missing(running) || all_ended
    }

    fn is_missing(&mut self, running: u32) -> bool {
        self.most = self.most.max(running);
        let all = if self.most > 0 { self.expected.unwrap_or(0).max(self.most) } else { 0 };
        let grows = running > self.last;
        self.last = running;
        running < all && !grows
    }
}

/// Returns device and inode of the program that a process runs. A process that has ended has none.
fn identity(process: &str) -> Option<(u64, u64)> {
    let program = fs::metadata(format!("/proc/{process}/exe")).ok()?;
    Some((program.dev(), program.ino()))
}

/// Process of each rank.
#[derive(Debug, Default)]
pub(super) struct RankTable(pub(super) Vec<RankProcess>);

impl RankTable {
    /// Returns the rank that the launcher's output names as lost, as `rank 1 on n01`. Ranks that have not said yet where they run are
    /// known by the launcher alone.
    pub(super) fn lost(&self, output: &[String]) -> Option<String> {
        if self.0.is_empty() {
            return output.iter().find_map(|line| unknown(line));
        }
        let rank = output.iter().find_map(|line| self.hydra(line).or_else(|| open_mpi(line)))?;
        let process = self.0.get(rank)?;
        let other = if self.may_be_killed_by_hydra(output) { " (or a later rank there)" } else { "" };
        Some(format!("rank {rank} on {}{other}", process.host))
    }

    /// Returns the rank that died and of which signal, if the launcher names both.
    pub(super) fn death(&self, output: &[String]) -> Option<String> {
        let (rank, signal) = self.lost(output).zip(signal_in(output))?;
        Some(format!("{rank} died of {signal}"))
    }

    /// Returns the processes of the ranks on this host.
    pub(super) fn here(&self) -> impl Iterator<Item = u64> {
        let here = environment::hostname();
        self.0.iter().filter(move |process| process.host == here).map(|process| process.pid)
    }

    /// Returns a rank on this host whose process has ended, as `rank 1 on n01`. Its launcher may not have noticed.
    pub(super) fn ended_here(&self) -> Option<String> {
        let here = environment::hostname();
        // A zombie has no executable.
        let lives = |pid: u64| fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).is_ok();
        let mut ours = (0..).zip(&self.0).filter(|(_, process)| process.host == here);
        ours.find(|(_, process)| !lives(process.pid))
            .map(|(rank, process)| format!("rank {rank} on {}", process.host))
    }

    /// Returns whether Hydra may have killed the rank that it names. If a rank dies of a signal, Hydra kills the others of its host by
    /// SIGKILL, and then names the first one that died of a signal, in the order of ranks.
    fn may_be_killed_by_hydra(&self, output: &[String]) -> bool {
        let named = output.iter().find_map(|line| self.hydra(line)).and_then(|rank| self.0.get(rank..));
        let is_killed = signal_in(output).as_deref() == Some(KILLED);
        named
            .and_then(<[_]>::split_first)
            .is_some_and(|(named, later)| is_killed && later.iter().any(|rank| rank.host == named.host))
    }

    /// Reads `=   PID 4711 RUNNING AT n01`.
    fn hydra(&self, line: &str) -> Option<usize> {
        let (pid, host) = line.split_once("PID ")?.1.split_once(" RUNNING AT ")?;
        let (pid, host): (u64, &str) = (pid.trim().parse().ok()?, host.trim());
        self.0.iter().position(|process| process.pid == pid && process.host == host)
    }
}

/// Reads `mpiexec noticed that process rank 1 with PID 0 on node n01 exited on signal 9` or `Process name: [[57341,1],1]`.
fn open_mpi(line: &str) -> Option<usize> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    match line.split_once("process rank ") {
        Some((_, after)) => number(after),
        None => number(line.split_once("Process name: [[")?.1.split_once("],")?.1),
    }
}

/// Reads the rank or the process, and the host, from the lines of `hydra` and `open_mpi`.
fn unknown(line: &str) -> Option<String> {
    if let Some((pid, host)) = line.split_once("PID ").and_then(|(_, rest)| rest.split_once(" RUNNING AT ")) {
        return Some(format!("process {pid} on {}", host.trim()));
    }
    let host = line.split_once(" on node ")?.1.split_whitespace().next()?;
    Some(format!("rank {} on {host}", open_mpi(line)?))
}

const KILLED: &str = "SIGKILL";

/// Returns the name of the signal by which the launcher's output says that a rank died: `EXIT STRING: Killed (signal 9)` or `exited on
/// signal 9 (Killed)`.
fn signal_in(output: &[String]) -> Option<String> {
    let number = output.iter().find_map(|line| signal_number(line))?;
    Some(signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned))
}

/// Reads the number of the signal from a line that says that a rank died.
fn signal_number(line: &str) -> Option<i32> {
    let (before, after) = line.split_once("signal ")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let says = before.ends_with('(') || before.ends_with("on ");
    digits.parse::<i32>().ok().filter(|_| says)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::launch::orphans::*;

    #[test]
    fn children_are_found_by_their_parent() {
        let own = getpid().as_raw_nonzero().get();
        assert_eq!(parent(own), rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()));
        let mut child = Command::new("sleep").arg("5").spawn().unwrap();
        assert!(children_of(getpid()).contains(&Pid::from_child(&child)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_launcher_is_examined_with_its_processes() {
        for (script, words, none_is_left) in [
            ("/bin/true & exec sleep 60", "true (", true),
            ("sh -c '/bin/true & exec sleep 60'; wait", "true (", true),
            ("sleep 60 & wait", "sleep (", false),
            ("/bin/true & sleep 60 & exec sleep 60", "sleep (", false),
            ("exec sleep 60", "and has no process", false),
        ] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let launcher = Pid::from_child(&child);
            let since = Since::now();
            let is_seen = || examined(launcher).contains(words) && waits_for_ended(launcher) == none_is_left;
            while !is_seen() && since.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let seen = examined(launcher);
            assert!(is_seen(), "{script}: {seen}");
            end_family(launcher);
            child.wait().unwrap();
        }
    }

    fn missing(expected: Option<u32>, running: &[u32]) -> Vec<bool> {
        let mut ranks = StartingRanks::new(rustix::process::getpid(), expected);
        running.iter().map(|running| ranks.is_missing(*running)).collect()
    }

    #[test]
    fn a_rank_is_missing_if_no_further_one_starts() {
        assert_eq!(missing(Some(4), &[0, 2, 3, 3, 4, 4]), [false, false, false, true, false, false]);
        assert_eq!(missing(Some(2), &[2, 1, 0]), [false, true, true]);
        assert_eq!(missing(None, &[0, 1, 2, 2, 1]), [false, false, false, false, true]);
        assert_eq!(missing(Some(2), &[0, 0]), [false, false], "a wrapper hides the ranks");
    }

    #[test]
    fn a_launcher_whose_children_have_all_ended_has_lost_a_rank() {
        // The shell becomes a program that does not wait for its child, which is a process of this program or another one.
        for (rank, is_missing) in [(std::env::current_exe().unwrap(), true), ("true".into(), false)] {
            let mut child = Command::new("sh")
                .args(["-c", "\"$0\" --list >&2 & exec sleep 60"])
                .arg(rank)
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let launcher = Pid::from_child(&child);
            let since = Since::now();
            while !descendants(launcher).first().is_some_and(has_ended)
                && since.elapsed() < Duration::from_secs(60)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(StartingRanks::new(launcher, None).is_one_missing(), is_missing);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn only_processes_of_this_program_are_ranks() {
        // Other tests start processes of this program, but not as descendants of the shell.
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let mut ranks = StartingRanks::new(Pid::from_child(&child), Some(1));
        assert!(!ranks.is_one_missing());
        assert_eq!(ranks.most, 0);
        assert_eq!(identity("self"), identity(&std::process::id().to_string()));
        assert!(identity(&child.id().to_string()).is_none_or(|program| Some(program) != identity("self")));
        end_family(Pid::from_child(&child));
        child.wait().unwrap();
        let none = identity(&u32::MAX.to_string());
        assert_eq!(none, None);
    }

    #[test]
    fn launchers_name_the_signal() {
        for line in [
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            "mpiexec noticed that process rank 1 with PID 0 on node n02 exited on signal 9 (Killed).",
        ] {
            assert_eq!(signal_in(&["x".to_owned(), line.to_owned()]).as_deref(), Some("SIGKILL"), "{line}");
        }
        assert_eq!(signal_in(&["typical reasons are listed under signal 7".to_owned()]), None);
    }

    #[test]
    fn launchers_name_the_lost_rank() {
        let ranks = RankTable(
            [(4710, "n01"), (4711, "n02")].map(|(pid, host)| RankProcess { pid, host: host.into() }).into(),
        );
        for line in [
            "=   PID 4711 RUNNING AT n02",
            "mpiexec noticed that process rank 1 with PID 0 on node n02 exited on signal 9 (Killed).",
            "  Process name: [[57341,1],1]",
        ] {
            let output = ["==========".to_owned(), line.to_owned()];
            assert_eq!(ranks.lost(&output).as_deref(), Some("rank 1 on n02"), "{line}");
        }
        for line in ["", "=   PID 4711 RUNNING AT n01", "Process name: [[57341,1],7]", "PID x RUNNING AT y"] {
            assert_eq!(ranks.lost(&[line.to_owned()]), None, "{line}");
        }
    }

    #[test]
    fn hydra_may_name_a_rank_that_it_killed() {
        let process = |pid, host: &str| RankProcess { pid, host: host.into() };
        let ranks = RankTable(vec![process(1, "n01"), process(2, "n01"), process(3, "n02")]);
        for (named, signal, expected) in [
            ("PID 1 RUNNING AT n01", 9, "rank 0 on n01 (or a later rank there) died of SIGKILL"),
            ("PID 1 RUNNING AT n01", 11, "rank 0 on n01 died of SIGSEGV"),
            ("PID 2 RUNNING AT n01", 9, "rank 1 on n01 died of SIGKILL"),
            ("PID 3 RUNNING AT n02", 9, "rank 2 on n02 died of SIGKILL"),
        ] {
            let output =
                [format!("=   {named}"), format!("YOUR APPLICATION TERMINATED WITH (signal {signal})")];
            assert_eq!(ranks.death(&output).as_deref(), Some(expected));
        }
        let open_mpi =
            "mpiexec noticed that process rank 0 with PID 1 on node n01 exited on signal 9 (Killed).";
        assert_eq!(ranks.death(&[open_mpi.to_owned()]).as_deref(), Some("rank 0 on n01 died of SIGKILL"));
    }

    /// A rank that dies before all have connected.
    #[test]
    fn launchers_name_ranks_that_nobody_knows_yet() {
        for (line, expected) in [
            ("=   PID 4711 RUNNING AT n02", Some("process 4711 on n02")),
            (
                "mpiexec noticed that process rank 1 with PID 0 on node n02 exited on signal 9 (Killed).",
                Some("rank 1 on n02"),
            ),
            ("an error on node n02", None),
        ] {
            assert_eq!(RankTable::default().lost(&[line.to_owned()]).as_deref(), expected, "{line}");
        }
    }
}
